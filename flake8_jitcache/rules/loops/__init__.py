"""JIT401 and JIT501: what is paid again on each iteration of an eager loop. Both are off by default.

`lax.scan` and its relatives keep the trace of their body with the function object, as a jit does. A jitted function is
traced for each new shape, so an array that grows with the loop is traced on each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from flake8_jitcache.facts import known
from flake8_jitcache.facts.iterations import LoopVariable
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of, describe_loop, functions_around, loops_around, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.findings import Finding
from flake8_jitcache.rules.loops.lengths import Lengths

_LOOPS = known.EAGER_LOOPS
_LAST_PARTS = frozenset(name.rpartition(".")[2] for name in _LOOPS)
_MADE = {
    "lambda": "a lambda",
    "partial": "a partial",
    "def": "a nested function",
    "transform": "a new function",
    "method": "a method looked up on its object",
}


def check(module: Module) -> Iterator[Finding]:
    """The findings of JIT401 and JIT501."""
    yield from _fresh_bodies(module)
    yield from _growing_shapes(module)


# -------------------------------------------------------------------- JIT401


def _fresh_bodies(module: Module) -> Iterator[Finding]:
    eager: Eager | None = None
    for call in _lax_calls(module):
        loop_names = module.names.dotted(call.func) & _LOOPS
        if not loop_names or module.traced.is_traced(call):
            continue
        eager = eager or Eager(module)
        loop = eager.repeated(call)
        if loop is not None:
            text = _judge_body(module, call, min(loop_names), loop)
            if text is not None:
                yield Finding.at(call, "JIT401", text)
    for call in module.source.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("update", "run"):
            continue
        judge = _searches_line if call.func.attr == "update" else _solves
        if (what := judge(module, call)) is None or module.traced.is_traced(call):
            continue
        eager = eager or Eager(module)
        loop = eager.repeated(call)
        if (
            loop is not None
            and (made := _solver(module, call)) is not None
            and not _made_with(module, made, call, loop)
        ):
            continue  # a solver that is made before the loop keeps its trace
        if loop is not None:
            text = f"{what} on each iteration of {describe_loop(loop)} in code that is not traced"
            remedy = "jit the function around it once, before the loop"
            yield Finding.at(call, "JIT401", f"{text}, so JAX traces and compiles its loop again each time; {remedy}")


def _searches_line(module: Module, call: ast.Call) -> str | None:
    """An optimizer of optax that searches along a line: it evaluates `value_fn` in a loop on the device."""
    if not any(keyword.arg == "value_fn" for keyword in call.keywords):
        return None
    return f"`{ast.unparse(call.func)}` searches along a line"


def _solves(module: Module, call: ast.Call) -> str | None:
    """A solver of jaxopt that is made anew."""
    made = _solver(module, call)
    if made is None:
        return None
    return f"a solver is made (`{ast.unparse(made.func)}`) and run"


def _solver(module: Module, call: ast.Call) -> ast.Call | None:
    """The call that makes the solver of jaxopt whose method a call runs."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call
    values: list[ast.expr | None] = [receiver]
    if isinstance(receiver, ast.Name):
        values = [binding.value for binding in module.source.reaching(receiver)]
    made = values[0] if len(values) == 1 else None
    if isinstance(made, ast.Call) and any(name.startswith("jaxopt.") for name in module.names.dotted(made.func)):
        return made
    return None


def _lax_calls(module: Module) -> Iterator[ast.Call]:
    """The calls that may be of a `lax` loop, by the last part of their name: few, where resolving all would cost."""
    source = module.source
    aliases = {
        binding.name
        for scope in source.all_scopes
        for bindings in scope.bindings.values()
        for binding in bindings
        if (binding.dotted or "").rpartition(".")[2] in _LAST_PARTS
        or (isinstance(binding.value, ast.Attribute) and binding.value.attr in _LAST_PARTS)
    }
    for call in source.calls:
        function = call.func
        if isinstance(function, ast.Attribute):
            if function.attr in _LAST_PARTS:
                yield call
        elif isinstance(function, ast.Name) and function.id in aliases:
            yield call


def _judge_body(module: Module, call: ast.Call, name: str, loop: ast.AST) -> str | None:
    library = "nnx." if ".nnx." in name else "lax."
    short = library + name.rpartition(".")[2]
    occasion = f"on each iteration of {describe_loop(loop)}"
    if short == "nnx.scan" and not _is_called(module, call):
        return None  # it is made here, and called by somebody else
    start = f"`{short}` runs {occasion} in code that is not traced"
    hoist = "define it once at module level, or jit the function around the loop"
    for body in _bodies(call, name):
        target = module.targets.classify(body)
        if target.kind == "transform" and not _is_transform(module, body):
            continue
        if target.kind in _MADE and target.origin is not None and _made_with(module, target.origin, call, loop):
            what = _MADE[target.kind]
            if target.kind == "def" and target.function is not None:
                what = f"the nested function `{getattr(target.function, 'name', '')}`, made anew"
            return f"{start} and gets {what} each time, so JAX traces and compiles it again; {hoist}"
    if short == "lax.map" or library == "nnx.":
        return (
            f"{start}, and it traces and compiles its function on each call, also one that stays the same; "
            "jit the function around it"
        )
    if short == "lax.fori_loop":
        bounds = [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("lower", "upper"))]
        for bound in bounds:
            for variable in module.iterations.changing(bound, call):
                if not module.iterations.is_few(variable, module.options.static_loop_limit):
                    return (
                        f"{start} with a bound that changes with `{variable.name}`, a Python number, so JAX compiles "
                        "it again for each; pass the bound as a JAX array, or jit the function around it"
                    )
    return None


def _bodies(call: ast.Call, name: str) -> Iterator[ast.expr]:
    """The functions that a `lax` loop is given."""
    given = [call.args[index] for index in known.CONTROL_FLOW[name] if index < len(call.args)]
    given += [k.value for k in call.keywords if k.arg in known.CONTROL_FLOW_KEYWORDS]
    for node in given:
        if isinstance(node, (ast.List, ast.Tuple)):
            yield from node.elts
        else:
            yield node


def _is_called(module: Module, call: ast.Call) -> bool:
    """Whether what a call gives is called at once."""
    parent = module.source.parents[call]
    return isinstance(parent, ast.Call) and parent.func is call


def _is_transform(module: Module, body: ast.expr) -> bool:
    return isinstance(body, ast.Call) and bool(module.names.dotted(body.func) & known.TRANSFORMS)


def _made_with(module: Module, origin: ast.AST, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a body is made on each iteration of the loop that repeats the call."""
    source = module.source
    if loop in loops_around(source, origin):
        return True
    function = place_of(source, call).function
    repeated_by_caller = loop not in loops_around(source, call)
    return repeated_by_caller and function is not None and place_of(source, origin).function is function


class Eager:
    """Which code is certainly not traced: module level, the program's entry point, tests, a driver that calls a jitted
    function in a loop, and what only those call."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._known: dict[Function, bool] = {}

    def repeated(self, call: ast.AST) -> ast.AST | None:
        """The loop that repeats a call in code that is certainly eager; None where there is none."""
        function = place_of(self._source, call).function
        if function is not None and not self.is_eager(function):
            return None
        return self._loop(call, set())

    def _loop(self, node: ast.AST, seen: set[Function]) -> ast.AST | None:
        place = place_of(self._source, node)
        if place.loop is not None or place.function is None or place.function in seen:
            return place.loop
        seen.add(place.function)
        if self._module.frequency.is_test(place.function):
            return None
        found = (self._loop(use.node, seen) for use in self._module.uses.of_function(place.function))
        return next((loop for loop in found if loop is not None), None)

    def is_eager(self, function: Function) -> bool:
        """Whether a function certainly runs eagerly."""
        if function not in self._known:
            self._known[function] = False  # a recursion proves nothing
            self._known[function] = self._decide(function)
        return self._known[function]

    def _decide(self, function: Function) -> bool:
        if function in self._module.traced.functions:
            return False
        frequency = self._module.frequency
        if frequency.is_entry(function) or function in self._drivers:
            return True
        if (
            isinstance(function, DEFINITIONS)
            and frequency.is_test(function)
            and not functions_around(self._source, function)
        ):
            return True
        uses = self._module.uses.of_function(function)
        if not uses or (isinstance(function, DEFINITIONS) and class_of(self._source, function) is not None):
            return False
        callers = [place_of(self._source, use.node).function for use in uses]
        return all(use.kind == "call" for use in uses) and all(c is None or self.is_eager(c) for c in callers)

    @cached_property
    def _drivers(self) -> set[Function]:
        """The functions that call a jitted function of the file in a loop of their own."""
        found: set[Function] = set()
        for creation in self._module.jits.creations:
            for use in self._module.uses.of(creation):
                place = place_of(self._source, use.node)
                if use.kind == "call" and place.loop is not None and place.function is not None:
                    found.add(place.function)
        return found


# -------------------------------------------------------------------- JIT501


def _growing_shapes(module: Module) -> Iterator[Finding]:
    lengths = Lengths(module)
    for creation in module.jits.creations:
        statics = None
        for use in module.uses.of(creation):
            call = use.node
            if use.kind not in ("call", "staged") or not use.exact or not isinstance(call, ast.Call):
                continue
            if not loops_around(module.source, call) or module.runs_for_free(call):
                continue
            statics = statics or module.signatures.statics(creation)
            keywords = statics.keywords if statics is not None else frozenset()
            positions = statics.positions if statics is not None else frozenset()
            arguments = [a for number, a in enumerate(call.args) if number + use.bound not in positions]
            arguments += [k.value for k in call.keywords if k.arg not in keywords]
            found = next((v for a in arguments if (v := _growth(module, lengths, a, call)) is not None), None)
            if found is not None:
                yield Finding.at(
                    call,
                    "JIT501",
                    f"the length of an array argument changes with `{found.name}` on each iteration of "
                    f"{describe_loop(found.loop)}, and JAX traces and compiles for each new shape; pad to one length "
                    "and pass the length or a mask as an argument",
                )


def _growth(module: Module, lengths: Lengths, argument: ast.expr, call: ast.Call) -> LoopVariable | None:
    limit = module.options.static_loop_limit
    found = lengths.changing(argument, call)
    return next((v for v in found if not module.iterations.is_few(v, limit)), None)
