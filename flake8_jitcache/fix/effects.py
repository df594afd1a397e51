"""What code that runs once per trace would do differently when it ran on each call.

A function that is jitted anew on each call is traced on each call, so its Python body runs on each call. Jitted once,
it runs once. That is the same unless the body does something that is seen outside, or reads what changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from flake8_jitcache.facts.array_functions import OF_ARRAYS
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.stable_names import MUTATORS, is_constant, is_functional

_FRAMES = frozenset({"locals", "eval", "exec", "super", "vars", "globals", "__import__", "compile"})
_SEEN_OUTSIDE = frozenset({"print", "open", "input", "next", "setattr", "delattr", "breakpoint"})
_CHANGING = ("random", "numpy.random", "time", "datetime", "logging", "absl.logging", "os", "sys", "warnings", "uuid",
             "secrets", "subprocess", "loguru", "wandb", "tqdm")  # fmt: skip
# Libraries whose module attributes are constants.
_LIBRARIES = frozenset({"jax", "numpy", "math", "scipy", "functools", "operator", "equinox", "flax", "optax", "chex", "jaxtyping",
                        "typing", "itertools", "collections", "haiku", "einops", "distrax", "diffrax", "lineax"})  # fmt: skip


@dataclass
class Effects:
    """assumptions: what has to hold for the same meaning, in words. changing: the module-level names that the moved
    code itself reads and that do not stay the same."""

    assumptions: list[str] = field(default_factory=list)
    changing: set[str] = field(default_factory=set)


def effects(module: Module, roots: Iterable[ast.AST]) -> Effects:
    """Look through code and the functions of the file that it calls. Raises Refused where it can't be moved at all."""
    found = Effects()
    seen: set[ast.AST] = set()
    pending: list[tuple[ast.AST, bool]] = [(root, True) for root in roots]
    while pending:
        code, moved = pending.pop()
        if code in seen:
            continue
        seen.add(code)
        for node in _nodes(code):
            _look_at(module, node, code, moved, found)
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                pending += [(function, False) for function in _called(module, node) if function not in seen]
    return found


def _nodes(code: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body (nested functions too), or of an expression."""
    if isinstance(code, DEFINITIONS):
        for statement in code.body:
            yield from ast.walk(statement)
    else:
        yield from ast.walk(code)


def _called(module: Module, node: ast.expr) -> list[Function]:
    """The functions of this file that a name stands for: it may be called here or by what it is passed to."""
    if isinstance(node, ast.Attribute) and module.names.dotted(node):
        return []
    return module.definitions.functions(node)


def _look_at(module: Module, node: ast.AST, code: ast.AST, moved: bool, found: Effects) -> None:
    source = module.source
    line = getattr(node, "lineno", 0)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        raise Refused(f"line {line} rebinds `{node.names[0]}` outside of the jitted function")
    if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
        if moved:
            raise Refused(f"line {line} yields or awaits in the jitted function")
        return
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        root = _root(node)
        if not isinstance(root, ast.Name) or not _is_local(module, root, code):
            raise Refused(f"line {line} assigns to `{ast.unparse(node)}` while it is traced")
        return
    if isinstance(node, ast.Call):
        _look_at_call(module, node, code, moved, found)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        owner = source.lookup(source.scopes[node], node.id)
        if node.id == "__class__":
            raise Refused("`__class__` is known inside the class only")
        if owner is source.module and not is_constant(module, node.id):
            if not moved:
                what = getattr(code, "name", "a lambda")
                raise Refused(f"`{what}`, which it calls, reads the global `{node.id}`, which changes")
            found.changing.add(node.id)
    elif isinstance(node, ast.Attribute) and not isinstance(source.parents.get(node), (ast.Call, ast.Attribute)):
        _look_at_attribute(module, node, moved, found)


def _look_at_call(module: Module, call: ast.Call, code: ast.AST, moved: bool, found: Effects) -> None:
    dotted = module.names.dotted(call.func)
    line = call.lineno
    if dotted & _FRAMES:
        if moved:
            raise Refused(f"line {line} calls `{min(dotted & _FRAMES)}`, which depends on where the code stands")
        return
    outside = dotted & _SEEN_OUTSIDE or {
        name for name in dotted if name.startswith(tuple(f"{module}." for module in _CHANGING))
    }
    if outside:
        found.assumptions.append(f"`{min(outside)}` in line {line} may run once per trace, not on each call")
    if isinstance(call.func, ast.Attribute) and call.func.attr in MUTATORS and not dotted:
        receiver = call.func.value
        root = _root(receiver)
        if is_functional(receiver):
            return
        if isinstance(root, ast.Name) and not _is_local(module, root, code):
            if call.func.attr in ("add", "update", "pop") and not isinstance(module.source.parents[call], ast.Expr):
                found.assumptions.append(f"`{ast.unparse(call.func)}` in line {line} changes nothing")
                return
            raise Refused(f"line {line} changes `{ast.unparse(receiver)}` while it is traced")


def _look_at_attribute(module: Module, node: ast.Attribute, moved: bool, found: Effects) -> None:
    """A constant of an imported module, or an attribute of something at module level."""
    root = _root(node)
    if not isinstance(root, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    source = module.source
    if source.lookup(source.scopes[root], root.id) is not source.module or root.id in found.changing:
        return
    dotted = module.names.dotted(node)
    if dotted and all(name.partition(".")[0] in _LIBRARIES for name in dotted):
        return
    kinds = {binding.kind for binding in source.reaching(root)}
    stored = any(isinstance(other.ctx, ast.Store) for other in source.attributes.get(node.attr, ()))
    if not dotted and kinds & {"class", "def"} and not stored:
        return
    if not dotted and moved and not kinds & {"import", "class", "def"} and node.attr not in OF_ARRAYS:
        found.changing.add(root.id)  # an object's attribute: read at each call, and passed
        return
    if node.attr.isupper() or node.attr in OF_ARRAYS:
        return
    found.assumptions.append(f"`{ast.unparse(node)}` does not change between calls")


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def _is_local(module: Module, name: ast.Name, code: ast.AST) -> bool:
    """Whether a name is bound inside the code that is looked at, and not as its parameter."""
    source = module.source
    owner = source.lookup(source.scopes[name], name.id)
    if owner is None or owner is source.module:
        return False
    inside = owner.node is code or any(parent is code for _, parent in source.ancestors(owner.node))
    return inside and not any(binding.kind == "parameter" for binding in owner.bindings[name.id])
