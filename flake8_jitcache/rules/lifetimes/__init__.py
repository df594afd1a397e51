"""JIT1xx: jitted functions whose lifetime is too short.

The verdict is a table over four answers: what is jitted, where, how often that runs, and what becomes of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flake8_jitcache.facts import known
from flake8_jitcache.facts.fates import Fate, Returned
from flake8_jitcache.facts.frequency import is_sweep
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import (
    Place,
    class_of,
    functions_around,
    in_name_guard,
    is_bound_in,
    loops_around,
    place_of,
)
from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.facts.targets import CODE_OF, Target, returns_of
from flake8_jitcache.findings import Finding
from flake8_jitcache.rules.lifetimes.objects import constructor_of, dropped
from flake8_jitcache.rules.lifetimes.wording import Occasion, wording
from flake8_jitcache.rules.statics import fresh_argument
from flake8_jitcache.rules.values import Values

# Of a function that is called from more places than this, the first ones are looked at.
_MANY = 200


@dataclass(frozen=True)
class Lifetime:
    """A place where a jitted callable comes into being, with the answers about it: a jit that is called, a decorator,
    or a call of a factory in this file (then `factory` is that function)."""

    node: ast.expr
    creation: Creation
    target: Target
    place: Place
    fate: Fate
    factory: Function | None = None


class Lifetimes:
    """All lifetimes of a module: its jits, and the calls of its factories."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.all = list(self._direct())
        self._through_factories()
        self._share_fates()
        self.all += list(self._through_objects())

    def _direct(self) -> Iterator[Lifetime]:
        module = self.module
        for creation in module.jits.creations:
            if creation.definition is not None:
                fate = module.fates.of_definition(creation.definition, creation.node)
            else:
                fate = module.fates.of(creation.node)
            target = module.targets.of(creation)
            yield Lifetime(creation.node, creation, target, place_of(module.source, creation.node), fate)

    def _through_factories(self) -> None:
        """Calls of functions that return a fresh jit are creations too, and so on to a fixpoint."""
        pending = list(self.all)
        seen: set[tuple[ast.AST, Returned]] = set()
        for lifetime in pending:  # grows on the way
            if lifetime.fate.kept:
                continue  # stored as well as returned: the function looks it up the next time
            for to in lifetime.fate.returned:
                if (lifetime.creation.node, to) in seen or self._is_kept_by(to.function):
                    continue
                seen.add((lifetime.creation.node, to))
                for use in self._products(to.function):
                    made = self._product(use, to, lifetime)
                    self.all.append(made)
                    pending.append(made)

    def _share_fates(self) -> None:
        """Where one of the functions that a call of a factory gives is kept or looped over, so is the call."""
        products = [it for it in self.all if it.factory is not None]
        lasting = {it.node for it in products if it.fate.outlives or it.fate.looped}
        for it in products:
            if it.node in lasting:
                it.fate.looped += it.fate.calls
                it.fate.calls.clear()

    def _through_objects(self) -> Iterator[Lifetime]:
        """Objects that jit something fresh in their constructor, made in a loop and dropped there; of several jits of
        one object, the first."""
        module, seen = self.module, set()
        for lifetime in self.all:
            if lifetime.factory is not None or not lifetime.target.is_fresh:
                continue
            constructor = constructor_of(module, lifetime.creation)
            if constructor is None or constructor in seen or _is_cached(module, lifetime.node):
                continue
            seen.add(constructor)
            for call, used in dropped(module, constructor):
                target = replace(lifetime.target, origin=call)
                place = place_of(module.source, call)
                yield Lifetime(call, lifetime.creation, target, place, Fate(calls=[used]), constructor)

    def _is_kept_by(self, function: Function) -> bool:
        """Whether what a function returns is made once per key, or inside a trace."""
        module = self.module
        return (
            any(module.caches.caches(f) for f in (function, *functions_around(module.source, function)))
            or function in module.traced.functions
        )

    def _products(self, function: Function) -> list[ast.expr]:
        """The expressions that evaluate to what a factory returns: its calls, or reads of a property."""
        module = self.module
        found: list[ast.expr] = []
        if isinstance(function, ast.Lambda):
            parent = module.source.parents.get(function)
            if isinstance(parent, ast.Call) and parent.func is function:
                return [parent]
        property_ = isinstance(function, DEFINITIONS) and _is_property(module, function)
        for use in module.definitions.products(function):
            if property_:
                found.append(use)
                continue
            parent = module.source.parents.get(use)
            if isinstance(parent, ast.Call) and parent.func is use:
                found.append(parent)
        return found

    def _product(self, use: ast.expr, to: Returned, of: Lifetime) -> Lifetime:
        module, function = self.module, to.function
        target = of.target
        if target.parameter is not None and isinstance(use, ast.Call):
            passed = _argument_for(module, use, function, target)
            target = Target("unknown") if passed is None else module.targets.classify(passed)
            if not target.is_fresh or target.origin is None:
                target = Target("unknown", parameter=target.parameter)
        elif target.is_fresh and not _made_within(module, target.origin, function):
            target = Target("stable", target.origin, target.function)
        if target.is_fresh:
            target = replace(target, origin=use)
        fate = module.fates.of(use, to.item)
        if to.loops:  # what is returned loops over the jit itself
            fate = replace(fate, calls=[], looped=fate.calls + fate.looped)
            fate.returned = [outer._replace(loops=True) for outer in fate.returned]
        return Lifetime(use, of.creation, target, place_of(module.source, use), fate, function)


def check(lifetimes: Lifetimes) -> Iterator[Finding]:
    """The findings of JIT101 to JIT107, JIT191 and JIT192."""
    for lifetime in lifetimes.all:
        finding = _judge(lifetimes.module, lifetime)
        if finding is not None:
            yield finding


def _judge(module: Module, it: Lifetime) -> Finding | None:
    """The verdict on one lifetime."""
    function = it.place.function
    if module.traced.is_traced(it.node) or _is_cached(module, it.node):
        return None
    if it.fate.outlives:
        keeps = it.fate.kept or it.fate.returned
        if function is not None and keeps and it.factory is None and not it.fate.passed:
            return _finding(module, it, "JIT192", Occasion(function, None))
        return None
    if it.fate.looped:
        if function is None:
            return None
        if not _is_repeated(module, function):
            return _finding(module, it, "JIT191", Occasion(function, None))
        it = replace(
            it, fate=replace(it.fate, calls=it.fate.calls + it.fate.looped, looped=[])
        )  # paid again by each call
    if not it.fate.calls:
        return None
    target = _settled(module, it)
    if target.kind in ("unknown", "hits"):
        return None
    loop = _loop_that_remakes(module, it, target)
    in_test = function is not None and module.frequency.is_test(function)
    if it.place.loop is not None and not in_test:
        once = function is None or module.frequency.runs_once(function)
        if it.factory is not None and once and _one_for_each(module, it, it.place.loop):
            return None if function is None else _finding(module, it, "JIT191", Occasion(function, None))
        if it.factory is not None and (loop is not None or not target.is_fresh):
            return _finding(module, it, "JIT106", Occasion(function, it.place.loop), target)
        code = CODE_OF[target.kind] if loop is not None else "JIT107"
        if code == "JIT107" and once and _options_change(module, it.creation, it.place.loop):
            return None  # a jit for each value of its options: there is nothing to make before the loop
        return _finding(module, it, code, Occasion(function, it.place.loop), target)
    if function is None:
        return _finding(module, it, "JIT191", Occasion(None, None)) if in_name_guard(module.source, it.node) else None
    if module.frequency.runs_once(function) or in_test or _initialises(it):
        return _finding(module, it, "JIT191", Occasion(function, None))
    if it.factory is not None:
        return _finding(module, it, "JIT106", Occasion(function, None), target)
    fresh = target.is_fresh and _made_within(module, target.origin, function)
    if not fresh and _gets_fresh_argument(module, it):
        return None  # JIT304: its trace is not kept
    return _finding(module, it, CODE_OF[target.kind] if fresh else "JIT107", Occasion(function, None), target)


def _finding(module: Module, it: Lifetime, code: str, occasion: Occasion, target: Target | None = None) -> Finding:
    text = wording(module, code, it.node, it.creation, target or it.target, occasion, it.factory)
    return Finding.at(it.node, code, text)


def _is_cached(module: Module, node: ast.AST) -> bool:
    return any(module.caches.caches(function) for function in functions_around(module.source, node))


def _settled(module: Module, it: Lifetime) -> Target:
    """The target, where it is a parameter: what callers in this file pass for it, if that is fresh."""
    binding = it.target.parameter
    if it.target.kind != "unknown" or binding is None or it.factory is not None:
        return it.target
    function = binding.scope.node
    if _is_decorated(module, it, function):
        return replace(it.target, kind="stable")
    if not isinstance(function, (*DEFINITIONS, ast.Lambda)):
        return it.target
    for call in module.definitions.calls_of(function)[:_MANY]:
        passed = module.definitions.argument(call, function, binding.name)
        if passed is None:
            continue
        target = module.targets.classify(passed)
        if not target.is_fresh or target.origin is None:
            continue
        place = place_of(module.source, target.origin)
        often = place.loop is not None or (
            place.function is not None and not module.frequency.runs_once(place.function)
        )
        if often and not module.traced.is_traced(call):
            return Target(target.kind, it.node, target.function, again=target.again, made_by=target.made_by)
    return it.target


def _is_decorated(module: Module, it: Lifetime, function: ast.AST) -> bool:
    """Whether a parameter is what a decorator decorates, and its wrapper jits that: the same function on each call."""
    wrapper = it.place.function
    if not isinstance(function, DEFINITIONS) or not isinstance(wrapper, DEFINITIONS) or wrapper is function:
        return False
    wraps = any(
        isinstance(d, ast.Call) and "functools.wraps" in module.names.dotted(d.func) for d in wrapper.decorator_list
    )
    returned = any(isinstance(value, ast.Name) and value.id == wrapper.name for value in returns_of(function))
    return wraps and returned and function in functions_around(module.source, wrapper)


def _loop_that_remakes(module: Module, it: Lifetime, target: Target) -> ast.AST | None:
    """The innermost loop around a creation in whose iterations the target is made anew too."""
    if not target.is_fresh:
        return None
    if it.factory is not None or target.origin is it.node:
        return it.place.loop
    origin_loops = [] if target.origin is None else loops_around(module.source, target.origin)
    same_function = target.origin is not None and (place_of(module.source, target.origin).function is it.place.function)
    return it.place.loop if same_function and it.place.loop in origin_loops else None


def _is_repeated(module: Module, function: Function) -> bool:
    """Whether a loop of the file, outside of tests and of traced code, calls a function that is no driver of its own."""
    if isinstance(function, DEFINITIONS) and module.frequency.is_driver(function):
        return False
    return any(
        use.kind == "call"
        and (loops := loops_around(module.source, use.node))
        and not is_sweep(loops[0])
        and not module.traced.is_traced(use.node)
        and not (
            (caller := place_of(module.source, use.node).function) is not None and module.frequency.is_test(caller)
        )
        for use in module.uses.of_function(function)
    )


def _one_for_each(module: Module, it: Lifetime, loop: ast.AST) -> bool:
    """Whether a factory is called once for each entry of a table, or for each of a few keys: another product each
    time. For each batch, another product each time is what costs."""
    given = [*it.node.args, *(k.value for k in it.node.keywords)] if isinstance(it.node, ast.Call) else []
    names = [n for value in given for n in ast.walk(value) if isinstance(n, ast.Name)]
    if not any(is_bound_in(module.source, b, loop) for name in names for b in module.source.reaching(name)):
        return False
    return isinstance(loop, ast.DictComp) or is_sweep(loop)


def _gets_fresh_argument(module: Module, it: Lifetime) -> bool:
    """Whether `equinox.filter_jit` is called with a function made anew, which is static there."""
    if not it.creation.maker.is_equinox:
        return False
    values = Values(module)
    return any(
        use.kind == "call" and isinstance(use.node, ast.Call) and fresh_argument(module, values, use.node) is not None
        for use in module.uses.of(it.creation)
    )


def _initialises(it: Lifetime) -> bool:
    """Whether what is jitted is an initialisation: `model.init`, a transform of it, or a function that returns what it
    gives. A program does that once."""
    target = it.creation.target
    while isinstance(target, ast.Call) and target.args:
        target = target.args[0]
    if isinstance(target, ast.Attribute):
        return target.attr in known.INITIALISERS
    function = it.target.function
    values = [] if function is None else [function.body] if isinstance(function, ast.Lambda) else returns_of(function)
    for value in values:
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            return value.func.attr in known.INITIALISERS
    return False


def _options_change(module: Module, creation: Creation, loop: ast.AST) -> bool:
    """Whether options of a jit call depend on what a loop binds."""
    options = creation.node.keywords if isinstance(creation.node, ast.Call) else []
    names = [n for option in options for n in ast.walk(option.value) if isinstance(n, ast.Name)]
    return any(is_bound_in(module.source, b, loop) for name in names for b in module.source.reaching(name))


def _made_within(module: Module, origin: ast.AST | None, function: Function) -> bool:
    """Whether the object is made in a function's own body, so that each call makes a new one."""
    return origin is not None and place_of(module.source, origin).function is function


def _argument_for(module: Module, call: ast.Call, function: Function, target: Target) -> ast.expr | None:
    binding = target.parameter
    if binding is None or binding.scope.node is not function:
        return None
    return module.definitions.argument(call, function, binding.name)


def _is_property(module: Module, function: Function) -> bool:
    if not isinstance(function, DEFINITIONS) or class_of(module.source, function) is None:
        return False
    return any("property" in module.names.dotted(d) for d in function.decorator_list)
