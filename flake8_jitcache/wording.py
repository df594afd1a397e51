"""The text of the JIT1xx findings: what happens, on which occasion, why, and the one change that fixes it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.jits import Creation
from flake8_jitcache.module import Module
from flake8_jitcache.places import class_of, describe_loop
from flake8_jitcache.scopes import DEFINITIONS, Function, Scope
from flake8_jitcache.targets import Target


@dataclass(frozen=True)
class Occasion:
    """When a place is evaluated: on each call of a function, or on each iteration of a loop."""

    function: Function | None
    loop: ast.AST | None

    def __str__(self) -> str:
        if self.loop is not None:
            return f"on each iteration of {describe_loop(self.loop)}"
        if self.function is None:
            return "once"
        if isinstance(self.function, ast.Lambda):
            return f"on each call of the lambda in line {self.function.lineno}"
        return f"on each call of `{self.function.name}`"


def wording(
    module: Module, code: str, creation: Creation, target: Target, occasion: Occasion, factory: Function | None
) -> str:
    """The text of one finding, without its code."""
    node = creation.node
    varying = varying_options(module, creation)
    again = "and compiled " if target.again == "traces" else ""
    cost = f"so JAX traces {again}it again each time".replace("traces and compiled it", "traces and compiles it")
    if target.again == "compiles":
        cost = "so JAX compiles it again each time (its trace is found again)"
    if code == "JIT101":
        return f"a jitted lambda is made anew {occasion} and dropped, {cost}; {_hoist(module, target, occasion)}"
    if code == "JIT102":
        return (
            f"a jitted partial is made anew {occasion} and dropped, {cost}; jit the function itself at module level "
            "and pass it the bound values as arguments"
        )
    if code == "JIT103":
        name = getattr(target.function, "name", "function")
        return (
            f"the jitted function `{name}` is defined anew {occasion} and dropped, {cost}; "
            f"{_hoist(module, target, occasion)}"
        )
    if code == "JIT104":
        return (
            f"a method is looked up on its object and jitted anew {occasion}, and a bound method is a new object each "
            f"time, {cost}; {_method_remedy(module, target, node)}"
        )
    if code == "JIT105":
        made = f"the result of `{target.made_by}`" if target.made_by else "the result of a call"
        what = f"{made} is jitted anew {occasion} and dropped, {cost}"
        return f"{what}; make the jitted function once, {_where_to_keep(module, occasion)}"
    if code == "JIT106":
        return _dropped_factory(target, occasion, factory)
    if code == "JIT107":
        return (
            f"a function that does not change is wrapped in a jit {occasion}; its trace is kept, but the wrapper is "
            f"made again each time, which costs more than a warm call; {_once(varying)}"
        )
    if code == "JIT191":
        if occasion.function is None:
            return "a jit is made in code that runs once and is not kept; at module level it could be used again"
        return (
            f"a jit is made {occasion} and used only in that call; made once at module level it would be traced once "
            "for all calls"
        )
    return f"a jit is made {occasion} and kept; made at module level it would be made once"


def _once(varying: list[str]) -> str:
    if not varying:
        return "jit it once at module level"
    names = " and ".join(f"`{name}`" for name in varying)
    return f"make one jitted function for each value of {names}, in a function under `functools.cache`"


def varying_options(module: Module, creation: Creation) -> list[str]:
    """The options of a jit whose values depend on names of the functions around it: it can't just move out of them."""
    if creation.definition is not None or not isinstance(creation.node, ast.Call):
        given = list(creation.maker.keywords)
    else:
        given = [*creation.maker.keywords, *creation.node.keywords]
    return [
        keyword.arg
        for keyword in given
        if keyword.arg is not None
        and any(isinstance(node, ast.Name) and _is_local(module, node) for node in ast.walk(keyword.value))
    ]


def _is_local(module: Module, node: ast.Name) -> bool:
    owner = module.source.lookup(module.source.scopes[node], node.id)
    return owner is not None and owner.kind not in ("module", "class")


def _hoist(module: Module, target: Target, occasion: Occasion) -> str:
    captured = captures(module, target.function) if target.function is not None else []
    if not captured:
        return "it captures nothing: define it once at module level"
    names = ", ".join(f"`{name}`" for name in captured[:3]) + (" and more" if len(captured) > 3 else "")
    return f"define it once at module level and pass {names} as {'arguments' if len(captured) > 1 else 'an argument'}"


def _method_remedy(module: Module, target: Target, node: ast.expr) -> str:
    method = target.function
    if method is not None and class_of(module.source, method) is not None:
        name = getattr(method, "name", "method")
        return f"jit `{name}` once in `__init__` and keep it, or jit a function of the object's data"
    return "jit it once where the object is made and keep it there, or jit a function of the object's data"


def _where_to_keep(module: Module, occasion: Occasion) -> str:
    if occasion.loop is not None:
        return "before the loop"
    if occasion.function is not None and class_of(module.source, occasion.function) is not None:
        return "at module level or in `__init__`"
    return "at module level"


def _dropped_factory(target: Target, occasion: Occasion, factory: Function | None) -> str:
    name = f"`{factory.name}`" if isinstance(factory, DEFINITIONS) else "a lambda"
    keep = "keep its product in a variable that lives longer, or put `functools.cache` on it"
    if not target.is_fresh:
        return (
            f"{name} makes a new jit wrapper {occasion}, and it is dropped; the trace of the function inside is kept, "
            f"but a wrapper costs more than a warm call; {keep}"
        )
    return (
        f"{name} returns a newly made jitted function {occasion}, and it is dropped, so JAX traces and compiles it "
        f"again each time; {keep}"
    )


def captures(module: Module, function: Function) -> list[str]:
    """The names that a function reads from the functions around it, in source order."""
    source = module.source
    own = source.scope_of_function[function]
    found: dict[str, tuple[int, int]] = {}
    for scope in source.all_scopes:
        if not _is_inside(scope, own):
            continue
        for name, loads in scope.loads.items():
            owner = source.lookup(scope, name)
            if owner is None or owner.kind in ("module", "class") or _is_inside(owner, own):
                continue
            first = min((load.lineno, load.col_offset) for load in loads)
            if name not in found or first < found[name]:
                found[name] = first
    return sorted(found, key=lambda name: found[name])


def _is_inside(scope: Scope, outer: Scope) -> bool:
    current: Scope | None = scope
    while current is not None:
        if current is outer:
            return True
        current = current.parent
    return False
