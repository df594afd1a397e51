"""JIT201 to JIT205 and JIT291: values that a jitted function read when it was traced, and that change afterwards.

A trace holds what the function's globals, enclosing locals and static or bound objects were at the first call. A later
call with the same abstract signature runs no Python, so it still sees the old value: the result is wrong, not slow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import last_part
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import functions_around, loops_around, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Function, Scope, start
from flake8_jitcache.facts.uses import Use
from flake8_jitcache.findings import Finding
from flake8_jitcache.rules.captured import words
from flake8_jitcache.rules.captured.changes import Change, Changes
from flake8_jitcache.rules.captured.impure import Impure, Impurities
from flake8_jitcache.rules.captured.invalidation import Invalidation
from flake8_jitcache.rules.captured.reach import Reach, Region, Root
from flake8_jitcache.rules.captured.timing import Life, Timing

# What an object and the one that takes its name after it have in common: a step's new array has the old one's shape, a
# new TrainState the old one's functions.
_LASTING = frozenset({"shape", "dtype", "ndim", "size", "aval", "sharding", "apply_fn", "tx"})


@dataclass(frozen=True)
class Stale:
    """A value that a trace holds and that changes: how it is spelled where it is read, and the change.

    late: the change comes before the first call, but after the jitted function was made. advanced: the traced code itself
    makes the change. doubt: why it is not certain that a call is wrong; empty where it is.
    """

    code: str
    read: ast.expr
    spelled: str
    change: Change
    late: bool = False
    advanced: bool = False
    doubt: str = ""


def check(module: Module) -> Iterator[Finding]:
    """The findings of JIT201 to JIT205 and JIT291."""
    if not module.jits.creations:
        return
    captured = Captured(module)
    for creation in module.jits.creations:
        found = sorted(captured.stale(creation), key=lambda s: (bool(s.doubt), s.code, start(s.read)))
        if found:
            yield Finding.at(creation.node, "JIT291" if found[0].doubt else found[0].code, captured.text(found))
            continue
        impure = captured.impure(creation)
        if impure:
            doubt = captured.doubt_of_module
            yield Finding.at(creation.node, "JIT291" if doubt else "JIT205", words.impure(impure, doubt))


class Captured:
    """What the jitted functions of one module capture."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._reach = Reach(module)
        self._changes = Changes(module)
        self._timing = Timing(module)
        self._invalidation = Invalidation(module)
        self._impurities = Impurities(module, self._reach)
        self.doubt_of_module = "this is a module of tests" if module.frequency.in_test_module else ""

    def impure(self, creation: Creation) -> list[Impure]:
        """The impure reads of a jitted function that reach its result."""
        regions = (self._reach.region(root) for root in self._reach.roots(creation))
        return [impure for region in regions for impure in self._impurities.of(region)]

    def stale(self, creation: Creation) -> Iterator[Stale]:
        """What goes stale in a jitted function."""
        for root in self._reach.roots(creation):
            region = self._reach.region(root)
            candidates = list(self._candidates(creation, root, region))
            if not candidates:
                continue
            life = self._life(creation, root)
            written = {
                stale.spelled
                for stale in candidates
                if self._in_region(stale.change.node, region) and not self._is_advanced(stale)
            }  # what the trace itself sets is no value from outside
            for stale in candidates:
                if stale.spelled in written or not self._may_reach_the_result(stale.read):
                    continue
                change = stale.change.node
                if self._in_region(change, region):
                    yield replace(stale, advanced=True, doubt=self.doubt_of_module)
                    continue
                if self._is_asked(creation.node, stale.spelled):
                    continue  # `if FLAG: ... else: jit(f)`: the jitted function runs with one value only
                if self._is_of_another_call(stale, life) or self._is_in_signature(creation, stale.spelled):
                    continue
                if self._invalidation.follows(creation, change):
                    continue
                if self._timing.is_stale(life, change):
                    yield replace(stale, doubt=self._doubt(stale, life))
                elif stale.code in ("JIT201", "JIT202") and (
                    self._timing.changes_under_it(life, change)
                    or (self._timing.is_read_late(life, change) and self._is_second(stale, life))
                ):
                    yield replace(stale, late=True, doubt=self.doubt_of_module)

    # ---------------------------------------------------------------- what is no change for a trace

    def _is_of_another_call(self, stale: Stale, life: Life) -> bool:
        """Whether a change of a captured local comes before the function that captures it is made, in the same call: the
        local of another call is another cell."""
        name = stale.spelled.partition(".")[0]
        owner = self._source.lookup(self._source.scopes[stale.read], name)
        if owner is None or owner.kind != "function" or not isinstance(owner.node, FUNCTIONS):
            return False
        around = functions_around(self._source, stale.change.node)
        if not around or around[0] is not owner.node:
            return False
        if life.home is not owner.node and owner.node not in functions_around(self._source, life.made):
            return True  # jitted elsewhere, once the call that made the function is over
        capturing = functions_around(self._source, stale.read)
        made = capturing[capturing.index(owner.node) - 1]
        loops = set(self._timing.loops_of(stale.change.node))
        return start(stale.change.node) < start(made) and not loops & set(loops_around(self._source, made))

    def _is_in_signature(self, creation: Creation, spelled: str) -> bool:
        """Whether each call passes the captured value as well, so that another one is another signature."""
        calls = [use.node for use in self._module.uses.of(creation) if use.kind == "call"]
        return bool(calls) and all(
            isinstance(call, ast.Call)
            and any(
                ast.unparse(argument) == spelled
                for argument in (*call.args, *(keyword.value for keyword in call.keywords))
            )
            for call in calls
        )

    def _may_reach_the_result(self, read: ast.expr) -> bool:
        """Whether a value is used for more than to print, or to decide whether to."""
        for end in self._module.flows.ends(read):
            prints = isinstance(end.node, ast.If) and not end.node.orelse and all(map(self._is_output, end.node.body))
            asked = isinstance(end.node, ast.Compare)  # `x in NAMES`, whose answer goes on
            if (end.kind != "nowhere" or asked) and not (end.kind == "test" and prints):
                return True
        return False

    def _is_output(self, statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and self._module.flows.is_output(call)

    def _is_advanced(self, stale: Stale) -> bool:
        """Whether the traced code advances a state of its own (a key, a counter) that reaches the result: each later call
        gets what the trace got."""
        statement = self._source.statement(stale.change.node)
        if stale.code == "JIT204" or not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return False
        reads = [
            node
            for node in ast.walk(statement.value if statement.value is not None else statement)
            if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == stale.spelled
        ]
        if not reads and not isinstance(statement, ast.AugAssign):
            return False  # saved, set and restored
        used = [stale.read, *reads]
        return any(end.kind == "result" for read in used for end in self._module.flows.ends(read))

    # ---------------------------------------------------------------- doubt

    def _doubt(self, stale: Stale, life: Life) -> str:
        """Why it is not certain that a call keeps an old value."""
        if self.doubt_of_module:
            return self.doubt_of_module
        change = stale.change.node
        around = functions_around(self._source, change)
        if stale.code in ("JIT203", "JIT204") and isinstance(stale.read, ast.Attribute):
            owner = self._module.definitions.class_behind(stale.read.value)
            if owner is not None and self._changes.is_set_once(owner, stale.read.attr):
                return "it may be set once, before the first call"
        if not around or self._timing.is_between(life, change):
            return ""
        if stale.code in ("JIT201", "JIT202") and self._is_none_at_first(stale):
            return "it may be set once, before the first call"
        outermost = around[-1]
        if isinstance(outermost, DEFINITIONS):
            if self._changes.sets_up(change):
                return f"`{outermost.name}` may run before the first call only"
            if outermost.name.startswith("_") and not self._module.definitions.uses(outermost):
                return f"nothing in this file calls `{outermost.name}`"
        if isinstance(change, ast.Attribute) and not self._is_own(change):
            return "it may be another object, or one that is not in use yet"
        return ""

    def _is_none_at_first(self, stale: Stale) -> bool:
        """Whether a name is bound to None, and to one value elsewhere."""
        scope = self._source.lookup(self._source.scopes[stale.read], stale.spelled)
        values = [] if scope is None else [b.value for b in scope.bindings[stale.spelled]]
        nones = [v for v in values if isinstance(v, ast.Constant) and v.value is None]
        return len(values) == 2 and len(nones) == 1

    def _is_own(self, change: ast.Attribute) -> bool:
        """Whether an attribute is assigned on `self`, or on an object of module level."""
        receiver = change.value
        if not isinstance(receiver, ast.Name):
            return isinstance(receiver, ast.Attribute)
        scope = self._source.lookup(self._source.scopes[receiver], receiver.id)
        return scope is not None and (
            scope.kind == "module" or (scope.kind == "function" and _is_first(scope, receiver.id))
        )

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
        others = () if remade and not root.bound else tuple(self._uses_of_others(creation, root))
        return Life(home, kept, made, tuple(uses), others)

    def _uses_of_others(self, creation: Creation, root: Root) -> Iterator[Use]:
        """The uses of other jits of the same function: JAX finds a trace by the function, whoever wraps it. A bound method
        is found as long as another jit of it is alive."""
        for other in self._jits_of.get(root.function, ()):
            if other is creation or other.definition is not None:
                continue
            if root.bound and not self._is_in_another_name(creation, other):
                continue
            yield from self._module.uses.of(other)

    @cached_property
    def _jits_of(self) -> dict[Function, list[Creation]]:
        found: dict[Function, list[Creation]] = {}
        for creation in self._module.jits.creations:
            target = self._module.targets.of(creation)
            if target.kind not in ("partial", "transform", "lambda"):
                for root in self._reach.roots(creation):
                    found.setdefault(root.function, []).append(creation)
        return found

    def _is_in_another_name(self, creation: Creation, other: Creation) -> bool:
        """Whether two jits are bound to two names, so that the first is alive when the second is made."""
        names = [
            {target.id for target in parent.targets if isinstance(target, ast.Name)}
            for node in (creation.node, other.node)
            if isinstance(parent := self._source.parents[node], ast.Assign)
        ]
        return len(names) == 2 and bool(names[0]) and bool(names[1]) and not names[0] & names[1]

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
        static = self._static_objects(creation, root)
        for function in region.functions:
            for scope in self._reach.scopes_in(function):
                for name, loads in scope.loads.items():
                    owner = self._source.lookup(scope, name)
                    if owner is None or owner.kind == "class":
                        continue
                    inside = owner.function in region.functions
                    if inside:
                        if owner.function is root.function and owner.kind == "function" and name in static:
                            yield from self._attributes(creation, root, loads, static[name])
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

    def _static_objects(self, creation: Creation, root: Root) -> dict[str, ast.ClassDef]:
        """The static parameters of a jitted function for which the file passes objects of a class of its own."""
        statics = self._module.signatures.statics(creation)
        if statics is None or not isinstance(root.function, DEFINITIONS):
            return {}
        parameters = [*root.function.args.posonlyargs, *root.function.args.args]
        names = {
            parameters[place].arg for place in statics.positions if isinstance(place, int) and place < len(parameters)
        }
        names |= {name for name in statics.keywords if isinstance(name, str)}
        if root.bound and parameters:
            names.discard(parameters[0].arg)  # `self`
        found: dict[str, ast.ClassDef] = {}
        for name in names:
            passed = (
                self._module.definitions.argument(use.node, root.function, name)
                for use in self._module.uses.of(creation)
                if use.kind == "call" and isinstance(use.node, ast.Call)
            )
            for argument in passed:
                owner = self._module.definitions.class_behind(argument) if argument is not None else None
                if owner is not None and not self._module.definitions.is_class(argument):  # type: ignore[arg-type]
                    found[name] = owner
        return found

    def _attributes(
        self, creation: Creation, root: Root, loads: list[ast.Name], of: ast.ClassDef | None = None
    ) -> Iterator[Stale]:
        """Reads of attributes of an object that is not an argument. of: its class, where the name itself does not tell."""
        for load in loads:
            read = self._source.parents[load]
            if not isinstance(read, ast.Attribute) or not isinstance(read.ctx, ast.Load):
                continue
            owner = of or self._module.definitions.class_behind(load)
            if owner is None or not self._is_read_of_value(read):
                continue
            changes = self._changes.assignments(owner, read.attr)
            if not changes or self._is_stable(owner):
                continue
            for change in changes:
                yield Stale("JIT204" if change.verb == "mutates" else "JIT203", read, ast.unparse(read), change)

    def _is_read_of_value(self, read: ast.Attribute) -> bool:
        parent = self._source.parents[read]
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, (ast.Store, ast.Del)):
            return parent.value is not read
        return True

    def _is_stable(self, owner: ast.ClassDef) -> bool:
        """Whether instances of a class don't change, or are found changed: a module of a JAX library, a frozen dataclass."""
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
        return False

    # ---------------------------------------------------------------- words

    def text(self, found: Sequence[Stale]) -> str:
        """The text of a finding that means all of these, of which the first decides."""
        return words.stale(self._module, found)


def _is_first(owner: Scope, name: str) -> bool:
    function = owner.node
    if not isinstance(function, FUNCTIONS):
        return False
    return [p.arg for p in [*function.args.posonlyargs, *function.args.args][:1]] == [name]
