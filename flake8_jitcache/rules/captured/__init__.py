"""JIT201 to JIT204: values that a jitted function read when it was traced, and that change afterwards.

A trace holds what the function's globals, enclosing locals and static or bound objects were at the first call. A later
call with the same abstract signature runs no Python, so it still sees the old value: the result is wrong, not slow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import last_part
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import describe_loop, functions_around, place_of
from flake8_jitcache.facts.scopes import COMPREHENSIONS, DEFINITIONS, FUNCTIONS, Function, Scope, start
from flake8_jitcache.facts.uses import Use
from flake8_jitcache.findings import Finding
from flake8_jitcache.rules.captured.changes import Change, Changes
from flake8_jitcache.rules.captured.reach import Reach, Region, Root
from flake8_jitcache.rules.captured.timing import Life, Timing
from flake8_jitcache.rules.needs import needed_by_python
from flake8_jitcache.rules.values import Values

# What an object and the one that takes its name after it have in common: a step's new array has the old one's shape, a
# new TrainState the old one's functions.
_LASTING = frozenset({"shape", "dtype", "ndim", "size", "aval", "sharding", "apply_fn", "tx"})


@dataclass(frozen=True)
class Stale:
    """A value that a trace holds and that changes: how it is spelled where it is read, and the change. late: the change
    comes before the first call, but after the jitted function was made."""

    code: str
    read: ast.expr
    spelled: str
    change: Change
    late: bool = False


def check(module: Module) -> Iterator[Finding]:
    """The findings of JIT201 to JIT204."""
    if not module.jits.creations:
        return
    captured = Captured(module)
    for creation in module.jits.creations:
        found = min(captured.stale(creation), key=lambda s: (s.code, start(s.read)), default=None)
        if found is not None:
            yield Finding.at(creation.node, found.code, captured.text(found))


class Captured:
    """What the jitted functions of one module capture."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._reach = Reach(module)
        self._changes = Changes(module)
        self._timing = Timing(module)
        self._values = Values(module)

    def stale(self, creation: Creation) -> Iterator[Stale]:
        """What goes stale in a jitted function."""
        for root in self._reach.roots(creation):
            region = self._reach.region(root)
            candidates = list(self._candidates(creation, root, region))
            if not candidates:
                continue
            life = self._life(creation, root)
            for stale in candidates:
                if self._in_region(stale.change.node, region):
                    continue  # code that runs while tracing: it counts traces, or leaks a tracer
                if self._is_asked(creation.node, stale.spelled):
                    continue  # `if FLAG: ... else: jit(f)`: the jitted function runs with one value only
                if self._timing.is_stale(life, stale.change.node):
                    yield stale
                elif stale.code in ("JIT201", "JIT202") and (
                    self._timing.changes_under_it(life, stale.change.node)
                    or (self._timing.is_read_late(life, stale.change.node) and self._is_second(stale, life))
                ):
                    yield replace(stale, late=True)

    def _in_region(self, node: ast.AST, region: Region) -> bool:
        return any(function in region.functions for function in functions_around(self._source, node))

    def _is_asked(self, node: ast.AST, name: str) -> bool:
        """Whether a place runs only where a name has some value."""
        return any(
            isinstance(parent, (ast.If, ast.IfExp))
            and self._source.fields[child] in ("body", "orelse")
            and any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(parent.test))
            for child, parent in self._source.ancestors(node)
        )

    def _life(self, creation: Creation, root: Root) -> Life:
        """How long the trace of a jitted function lives, and where the function is used."""
        target = self._module.targets.of(creation)
        remade = root.bound or (target.kind in ("partial", "transform", "method") and target.again == "traces")
        made = creation.node if remade and creation.definition is None else root.function
        home = place_of(self._source, made).function
        uses = self._module.uses.of(creation)
        kept = home is None or self._outlives(creation, home, uses)
        return Life(home, kept, made, tuple(uses))

    def _outlives(self, creation: Creation, home: Function, uses: list[Use]) -> bool:
        """Whether a jitted function outlives the call that made the function object in it."""
        if place_of(self._source, creation.node).function is not home:
            # Made in one function and jitted in another, as by a helper: what the helper returns does not outlive it.
            holders = {home, *functions_around(self._source, home)}
            return any(
                use.kind == "kept"
                or (use.kind == "returned" and holders & set(functions_around(self._source, use.node)[:1]))
                for use in uses
            )
        if creation.definition is not None:
            fate = self._module.fates.of_definition(creation.definition, creation.node)
        else:
            fate = self._module.fates.of(creation.node)
        return bool(fate.kept or fate.returned)

    def _is_second(self, stale: Stale, life: Life) -> bool:
        """Whether a local had a value before the jitted function was made."""
        name = stale.spelled
        scope = self._source.lookup(self._source.scopes[stale.change.node], name)
        return scope is not None and any(
            b.kind == "parameter" or b.effective < start(life.made) for b in scope.bindings[name]
        )

    # ---------------------------------------------------------------- reads

    def _candidates(self, creation: Creation, root: Root, region: Region) -> Iterator[Stale]:
        """What the traced code reads from outside and some code changes."""
        for function in region.functions:
            for scope in self._reach.scopes_in(function):
                for name, loads in scope.loads.items():
                    owner = self._source.lookup(scope, name)
                    if owner is None or owner.kind == "class":
                        continue
                    inside = owner.function in region.functions
                    if inside:
                        if owner.function in region.captured and owner.kind == "function" and _is_first(owner, name):
                            yield from self._attributes(creation, root, loads)
                        continue
                    yield from self._names_read(owner, name, loads)
                    yield from self._attributes(creation, root, loads)

    def _names_read(self, owner: Scope, name: str, loads: list[ast.Name]) -> Iterator[Stale]:
        rebindings = self._changes.rebindings(owner, name)
        mutations = self._changes.mutations(owner, name)
        if rebindings or mutations:
            read = next((load for load in loads if self._is_read(load)), None)
            if read is not None:
                code = "JIT201" if owner.kind == "module" else "JIT202"
                for change in rebindings:
                    yield Stale(code, read, name, change)
                for change in mutations:
                    yield Stale("JIT204", read, name, change)
        if owner.kind == "module" and any(b.kind == "import" for b in owner.bindings[name]):
            yield from self._module_attributes(loads)

    def _is_read(self, load: ast.Name) -> bool:
        """Whether a load is for the value, and not to change it, nor for what stays the same (`x.dtype`)."""
        parent = self._source.parents[load]
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, (ast.Store, ast.Del)):
            return parent.value is not load
        if isinstance(parent, ast.Attribute):
            if parent.attr in _LASTING:
                return False
            call = self._source.parents[parent]
            statement = self._source.parents[call]
            mutates = parent.attr in known.ADDERS and isinstance(call, ast.Call) and call.func is parent
            return not (mutates and isinstance(statement, ast.Expr))
        return True

    def _module_attributes(self, loads: list[ast.Name]) -> Iterator[Stale]:
        changed = self._changes.module_attributes
        if not changed:
            return
        for load in loads:
            node: ast.AST = load
            while isinstance(self._source.parents[node], ast.Attribute):
                node = self._source.parents[node]
                assert isinstance(node, ast.Attribute)
                if isinstance(node.ctx, ast.Load):
                    for dotted in self._module.names.dotted(node):
                        for change in changed.get(dotted, ()):
                            yield Stale("JIT201", node, ast.unparse(node), change)

    # ---------------------------------------------------------------- attributes

    def _attributes(self, creation: Creation, root: Root, loads: list[ast.Name]) -> Iterator[Stale]:
        """Reads of attributes of an object that is not an argument."""
        for load in loads:
            read = self._source.parents[load]
            if not isinstance(read, ast.Attribute) or not isinstance(read.ctx, ast.Load):
                continue
            owner = self._module.definitions.class_behind(load)
            if owner is None or not self._is_read_of_value(read):
                continue
            changes = self._changes.assignments(owner, read.attr)
            if not changes or self._is_stable(owner, creation, root):
                continue
            for change in changes:
                yield Stale("JIT204" if change.verb == "mutates" else "JIT203", read, ast.unparse(read), change)

    def _is_read_of_value(self, read: ast.Attribute) -> bool:
        parent = self._source.parents[read]
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, (ast.Store, ast.Del)):
            return parent.value is not read
        return True

    def _is_stable(self, owner: ast.ClassDef, creation: Creation, root: Root) -> bool:
        """Whether instances of a class don't change, or are found changed: a module of a JAX library, a frozen
        dataclass, and for a static `self` one that hashes by value."""
        bases = self._module.definitions.bases(owner)
        if bases & known.STABLE_BASES or any(last_part(base) in ("PyTreeNode", "NamedTuple") for base in bases):
            return True
        for decorator in owner.decorator_list:
            node = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = self._module.names.dotted(node)
            if any(name.startswith(("flax.", "chex.", "equinox.", "simple_pytree.")) for name in dotted):
                return True
            if isinstance(decorator, ast.Call) and any(
                k.arg == "frozen" and isinstance(k.value, ast.Constant) and k.value.value for k in decorator.keywords
            ):
                return True
        static = root.bound and (creation.definition is root.function or creation.target is root.function)
        return static and self._values.equality(owner) == "value"

    # ---------------------------------------------------------------- words

    def text(self, stale: Stale) -> str:
        """The text of a finding."""
        where = self._where(stale.change)
        needs = needed_by_python(self._module, stale.read)
        if stale.code == "JIT204":
            remedy = "pass it as an argument, as a JAX array or a pytree"
            if stale.change.kind == "set":
                remedy = "pass it as a static argument, as a frozenset"
            elif needs is not None:
                remedy = f"pass what the code {needs} as a static argument"
            return (
                f"the jitted code reads `{stale.spelled}` when it is traced, and {where}: a call that is not traced "
                f"again keeps the old content; {remedy}"
            )
        remedy = f"pass `{stale.spelled}` as an argument"
        if needs is not None:
            remedy = f"pass `{stale.spelled}` as a static argument, as the code {needs} it"
        if stale.code == "JIT203":
            return (
                f"the jitted code reads `{stale.spelled}` when it is traced, since its object is not a traced argument, "
                f"and {where}: a call that is not traced again keeps the old value; {remedy}"
            )
        what = "global" if stale.code == "JIT201" else "captured local"
        if stale.late:
            return (
                f"the jitted code reads the {what} `{stale.spelled}` at its first call, not where it is made, and "
                f"{where}: it sees the later value; {remedy}, or bind it there with a default "
                f"`{stale.spelled}={stale.spelled}`"
            )
        return (
            f"the jitted code reads the {what} `{stale.spelled}` when it is traced, and {where}: a call that is not "
            f"traced again keeps the old value; {remedy}"
        )

    def _where(self, change: Change) -> str:
        node = change.node
        verb = {"rebinds": "is rebound", "assigns": "is assigned", "mutates": "is mutated", "sets": "is set"}[
            change.verb
        ]
        line = f"in line {node.lineno}"  # type: ignore[attr-defined]
        for child, parent in self._source.ancestors(node):
            if isinstance(parent, (ast.For, ast.AsyncFor, *COMPREHENSIONS)) and self._source.fields[child] == "target":
                return f"it {verb} by {describe_loop(parent)}"
        around = functions_around(self._source, node)
        if around and isinstance(around[0], DEFINITIONS):
            return f"`{around[0].name}` {change.verb} it {line}"
        return f"it {verb} {line}"


def _is_first(owner: Scope, name: str) -> bool:
    function = owner.node
    if not isinstance(function, FUNCTIONS):
        return False
    return [p.arg for p in [*function.args.posonlyargs, *function.args.args][:1]] == [name]
