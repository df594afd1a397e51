"""What changes after the fact: names that are rebound, attributes that are assigned, containers that are mutated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flake8_jitcache.facts import known
from flake8_jitcache.facts.frequency import PER_OBJECT
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of, functions_around, loops_around
from flake8_jitcache.facts.scopes import DEFINITIONS, Binding, Function, Scope, start

_REBINDING = frozenset({"assign", "unpack", "augmented", "loop", "with", "except", "match", "parameter"})

_LIST = frozenset("append extend insert remove pop clear sort reverse appendleft extendleft popleft rotate".split())
_DICT = frozenset("update pop popitem clear move_to_end subtract".split())
_SET = frozenset(
    "add update discard remove pop clear difference_update intersection_update symmetric_difference_update".split()
)
_ARRAY = frozenset("fill sort put resize partition itemset".split())
_MUTATORS: dict[str, frozenset[str]] = {
    "list": _LIST,
    "dict": _DICT,
    "set": _SET,
    "numpy array": _ARRAY,
    "unknown": frozenset({"append", "extend", "insert", "appendleft"}),
}
_SETS_UP = re.compile(r"(^|_)(init|initiali[sz]e|setup|set_up|build|attach)(_|$)")
_MUTABLE = _MUTATORS.keys() - {"unknown"}
_MAKES = {"list": "list", "dict": "dict", "set": "set", "bytearray": "list", "collections.deque": "list"}
# Functions that change their first argument in place.
_CHANGES_FIRST = frozenset(
    {
        "numpy.copyto",
        "numpy.put",
        "numpy.place",
        "numpy.putmask",
        "numpy.fill_diagonal",
        "numpy.add.at",
        "numpy.subtract.at",
        "numpy.multiply.at",
        "numpy.random.shuffle",
        "random.shuffle",
    }
)
_HEAP = frozenset({"heapq.heappush", "heapq.heappop", "heapq.heapify", "heapq.heapreplace", "bisect.insort"})


@dataclass(frozen=True)
class Change:
    """One place that changes something: the node, and what happens there ("rebinds", "assigns", "mutates"). kind: what
    is mutated."""

    node: ast.AST
    verb: str
    kind: str = ""


class Changes:
    """Finds changes in one module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._names = module.names
        self._definitions = module.definitions
        self._rebound: dict[tuple[Scope, str], list[Change]] = {}
        self._mutated: dict[tuple[Scope, str], list[Change]] = {}
        self._attributes: dict[tuple[ast.ClassDef, str], list[Change]] = {}

    # ---------------------------------------------------------------- names

    def rebindings(self, scope: Scope, name: str) -> list[Change]:
        """Where a name gets another value, the place that gives it its first one included."""
        key = scope, name
        if key not in self._rebound:
            self._rebound[key] = self._find_rebindings(scope, name)
        return self._rebound[key]

    def _find_rebindings(self, scope: Scope, name: str) -> list[Change]:
        bindings = [b for b in scope.bindings.get(name, ()) if b.kind in _REBINDING]
        if any(b.kind in ("def", "class", "import") for b in scope.bindings.get(name, ())):
            bindings = [b for b in bindings if b.kind != "assign"] if len(bindings) < 2 else bindings
        elsewhere = self._stored_by_name.get(name, []) if scope.kind == "module" else []
        if not elsewhere and len(bindings) < 2 and not any(self._is_repeated(b) for b in bindings):
            return []
        if self._container(scope, name) in _MUTABLE:
            bindings = [b for b in bindings if b.kind != "augmented"]  # in place: a mutation
        changes = [b for b in bindings if b.kind != "parameter" and not self._is_guarded(b.node, name)]
        if len(changes) < len([b for b in bindings if b.kind != "parameter"]):
            changes = [b for b in changes if not _is_none(b.value)]  # a lazy value and its reset
        return [Change(b.node, "rebinds") for b in changes] + [Change(node, "rebinds") for node in elsewhere]

    def _is_repeated(self, binding: Binding) -> bool:
        return binding.kind in ("loop", "augmented") or bool(loops_around(self._source, binding.node))

    @cached_property
    def _stored_by_name(self) -> dict[str, list[ast.AST]]:
        """Globals of this module that are set by their name as a string: `globals()["x"] = ...`, `setattr`."""
        found: dict[str, list[ast.AST]] = {}
        for name, holder, call in self._set_calls:
            if holder is None or self._is_this_module(holder):
                found.setdefault(name, []).append(call)
        for call in self._source.calls:
            parent = self._source.parents[call]
            if (
                self._names.dotted(call.func) == {"globals"}
                and isinstance(parent, ast.Subscript)
                and isinstance(parent.ctx, ast.Store)
                and isinstance(parent.slice, ast.Constant)
            ):
                found.setdefault(str(parent.slice.value), []).append(parent)
        return found

    @cached_property
    def module_attributes(self) -> dict[str, list[Change]]:
        """Attributes of imported modules that this file sets, by their dotted name."""
        found: dict[str, list[Change]] = {}
        for nodes in self._source.attributes.values():
            for node in nodes:
                if isinstance(node.ctx, ast.Store):
                    for dotted in self._names.dotted(node):
                        found.setdefault(dotted, []).append(Change(node, "assigns"))
        for name, holder, call in self._set_calls:
            for dotted in () if holder is None else self._names.dotted(holder):
                found.setdefault(f"{dotted}.{name}", []).append(Change(call, "sets"))
        return {name: changes for name, changes in found.items() if not name.startswith("jax.")}

    def _set_by_call(self, call: ast.Call) -> Iterator[tuple[str, ast.expr | None]]:
        """(name, object) for `setattr(object, "name", ...)` and its relatives; the object is None for this module's
        own globals."""
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr == "update" and isinstance(function.value, ast.Call):
            if self._names.dotted(function.value.func) == {"globals"}:
                for keyword in call.keywords:
                    if keyword.arg is not None:
                        yield keyword.arg, None
            return
        is_setter = self._names.dotted(function) & {"setattr", "unittest.mock.patch.object", "mock.patch.object"}
        is_patch = (
            isinstance(function, ast.Attribute) and function.attr == "setattr" and not self._names.dotted(function)
        )
        if not (is_setter or is_patch) or len(call.args) < 2:
            return
        holder, name = call.args[:2]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value, holder

    def _is_this_module(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            bindings = self._source.reaching(node)
            return len(bindings) == 1 and bindings[0].value is not None and self._is_this_module(bindings[0].value)
        inner: ast.expr | None = None
        if isinstance(node, ast.Subscript) and self._names.dotted(node.value) == {"sys.modules"}:
            inner = node.slice
        elif isinstance(node, ast.Call) and "importlib.import_module" in self._names.dotted(node.func):
            inner = next(iter(node.args), None)
        return isinstance(inner, ast.Name) and inner.id == "__name__"

    # ---------------------------------------------------------------- containers

    def mutations(self, scope: Scope, name: str) -> list[Change]:
        """Where the object that a name is bound to is changed in place through that name."""
        key = scope, name
        if key not in self._mutated:
            self._mutated[key] = self._find_mutations(scope, name)
        return self._mutated[key]

    def _find_mutations(self, scope: Scope, name: str) -> list[Change]:
        kind = self._container(scope, name)
        if kind == "fixed":
            return []
        found = [
            Change(node, "mutates", kind)
            for load in self._source.references.get((scope, name), ())
            if (node := self._mutation(load, kind)) is not None
        ]
        if kind in _MUTABLE:
            found += [Change(b.node, "mutates", kind) for b in scope.bindings.get(name, ()) if b.kind == "augmented"]
        return found

    def _container(self, scope: Scope, name: str) -> str:
        """What a name is bound to: "list", "dict", "set", "numpy array", "fixed" for what can't change, or "unknown"."""
        kinds = set()
        for binding in scope.bindings.get(name, ()):
            if binding.kind in ("augmented", "delete"):
                continue
            if binding.kind in ("def", "class"):
                return "fixed"
            plain = binding.kind == "assign" and binding.value is not None and binding.index is None
            kinds.add(self._kind(binding.value) if plain and binding.value is not None else "unknown")
        return kinds.pop() if len(kinds) == 1 else "unknown"

    def _kind(self, node: ast.expr) -> str:
        if isinstance(node, (ast.List, ast.ListComp)):
            return "list"
        if isinstance(node, (ast.Dict, ast.DictComp)):
            return "dict"
        if isinstance(node, (ast.Set, ast.SetComp)):
            return "set"
        if isinstance(node, (ast.Constant, ast.Tuple, ast.Lambda, ast.JoinedStr)):
            return "fixed"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return "list" if "list" in (self._kind(node.left), self._kind(node.right)) else "unknown"
        if isinstance(node, ast.Call):
            for dotted in self._names.dotted(node.func):
                if dotted in known.NUMPY_ARRAYS:
                    return "numpy array"
                if dotted in known.JAX_ARRAYS | known.REFERENCES:
                    return "fixed"
                if dotted in known.MUTABLE_MAKERS:
                    return _MAKES.get(dotted, "dict")
        return "unknown"

    def _mutation(self, node: ast.expr, kind: str) -> ast.AST | None:
        """The place where a read of a container changes it, where it does."""
        parents = self._source.parents
        holder = node
        parent = parents[holder]
        while isinstance(parent, ast.Subscript) and self._source.fields[holder] == "value":
            if isinstance(parent.ctx, (ast.Store, ast.Del)):
                return None if self._is_registry(node) else parent
            holder, parent = parent, parents[parent]
        if isinstance(parent, ast.Attribute):
            call = parents[parent]
            if not isinstance(call, ast.Call) or call.func is not parent:
                return None
            kind = kind if holder is node else "unknown"
            alone = isinstance(parents[call], ast.Expr)
            adds = kind == "dict" and parent.attr == "setdefault" and alone
            # What is used of `x.append(v)` is no list's None: a function of a module, or an object made anew.
            if adds or (parent.attr in _MUTATORS[kind] and (alone or kind != "unknown")):
                return None if self._is_registry(node) else call
            return None
        if isinstance(parent, ast.Call) and holder is node:
            dotted = self._names.dotted(parent.func)
            first = parent.args[:1] == [node]
            shuffles = isinstance(parent.func, ast.Attribute) and parent.func.attr == "shuffle"
            if first and (dotted & (_CHANGES_FIRST | _HEAP) or (shuffles and len(parent.args) == 1)):
                return parent if not any(name.startswith("jax.") for name in dotted) else None
        if isinstance(parent, ast.keyword) and parent.arg == "out" and kind == "numpy array":
            return parents[parent]
        return None

    def _is_registry(self, node: ast.AST) -> bool:
        """Whether a place fills a table once per key: a registry's decorator, or a memo that looks before it adds."""
        around = functions_around(self._source, node)
        if not around or isinstance(around[0], ast.Lambda):
            return False
        for function in around:
            if isinstance(function, DEFINITIONS) and ("register" in function.name.lower() or self._decorates(function)):
                return True
        return any(_looks_up(inner, _spelled(node)) for inner in ast.walk(around[0]))

    def _decorates(self, function: Function) -> bool:
        for use in self._definitions.uses(function):
            holder = self._source.parents[use]
            used = holder if isinstance(holder, ast.Call) and holder.func is use else use
            if self._source.fields[used] == "decorator_list":
                return True
        return False

    # ---------------------------------------------------------------- attributes

    def assignments(self, owner: ast.ClassDef, attribute: str) -> list[Change]:
        """Where an attribute of a class's instances, or of the class, is assigned once they are made, and where what
        it holds is mutated."""
        key = owner, attribute
        if key not in self._attributes:
            self._attributes[key] = self._find_assignments(owner, attribute)
        return self._attributes[key]

    def _find_assignments(self, owner: ast.ClassDef, attribute: str) -> list[Change]:
        nodes = self._nodes(owner, attribute)
        stores = [n for n in nodes if isinstance(n.ctx, ast.Store)]
        later = [n for n in stores if not self._while_made(n)]
        if len(stores) == 1 and later and self.sets_up(later[0]):
            return []
        changes = [n for n in later if not self._is_guarded(n, attribute)]
        if len(changes) < len(later):
            changes = [n for n in changes if not _is_none(self._stored(n))]
        found = [Change(n, "assigns") for n in changes]
        found += [Change(call, "sets") for call in self._set_on(owner, attribute)]
        kinds = {self._kind(v) for n in stores if (v := self._stored(n)) is not None}
        kind = kinds.pop() if len(kinds) == 1 else "unknown"
        if kind in _MUTABLE:
            for node in nodes:
                if isinstance(node.ctx, ast.Load) and not self._while_made(node):
                    place = self._mutation(node, kind)
                    if place is not None:
                        found.append(Change(place, "mutates", kind))
        return found

    def is_set_once(self, owner: ast.ClassDef, attribute: str) -> bool:
        """Whether an attribute is None when an object is made, and one place gives it its value: a late set-up."""
        stores = [node for node in self._nodes(owner, attribute) if isinstance(node.ctx, ast.Store)]
        made = [node for node in stores if self._while_made(node)]
        later = [node for node in stores if node not in made and not _is_none(self._stored(node))]
        return bool(made) and all(_is_none(self._stored(node)) for node in made) and len(later) == 1

    def _set_on(self, owner: ast.ClassDef, attribute: str) -> Iterator[ast.Call]:
        """The calls of `setattr(self, "attribute", ...)` outside of a constructor."""
        for name, holder, call in self._set_calls:
            if name == attribute and holder is not None and self._is_instance(holder, owner):
                around = functions_around(self._source, call)
                if not any(self._makes(function, set()) for function in around):
                    yield call

    @cached_property
    def _set_calls(self) -> list[tuple[str, ast.expr | None, ast.Call]]:
        return [(name, holder, call) for call in self._source.calls for name, holder in self._set_by_call(call)]

    def _nodes(self, owner: ast.ClassDef, attribute: str) -> list[ast.Attribute]:
        """The attributes of a name whose object is of a class, of one of its bases, or of a class that derives from it,
        in source order."""
        behind = self._behind.get(attribute)
        if behind is None:
            behind = self._behind[attribute] = {}
            for node in self._source.attributes.get(attribute, ()):
                cls = self._definitions.class_behind(node.value)
                if cls is not None:
                    behind.setdefault(cls, []).append(node)
        return sorted((node for cls in self._family(owner) for node in behind.get(cls, ())), key=start)

    @cached_property
    def _behind(self) -> dict[str, dict[ast.ClassDef, list[ast.Attribute]]]:
        return {}

    def _is_instance(self, node: ast.expr, owner: ast.ClassDef) -> bool:
        """Whether an expression is an object of a class, of one of its bases, or of a class that has it as a base."""
        behind = self._definitions.class_behind(node)
        return behind is not None and behind in self._family(owner)

    def _family(self, owner: ast.ClassDef) -> set[ast.ClassDef]:
        """A class, its bases in the file, and the classes that derive from it."""
        found = {owner}
        for related in self._related:
            pending = [owner]
            while pending:
                for cls in related.get(pending.pop(), ()):
                    if cls not in found:
                        found.add(cls)
                        pending.append(cls)
        return found

    @cached_property
    def _related(self) -> tuple[dict[ast.ClassDef, list[ast.ClassDef]], dict[ast.ClassDef, list[ast.ClassDef]]]:
        """The bases in the file of each class, and the classes that derive from it."""
        bases: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        derived: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        for cls in self._source.classes:
            for base in cls.bases:
                for binding in self._source.reaching(base) if isinstance(base, ast.Name) else ():
                    if isinstance(binding.node, ast.ClassDef):
                        bases.setdefault(cls, []).append(binding.node)
                        derived.setdefault(binding.node, []).append(cls)
        return bases, derived

    def _stored(self, node: ast.Attribute) -> ast.expr | None:
        parent = self._source.parents[node]
        return parent.value if isinstance(parent, (ast.Assign, ast.AnnAssign)) else None

    def _while_made(self, node: ast.Attribute) -> bool:
        """Whether an assignment belongs to the making of an object: in `__init__` and what only that calls, or on an
        object that is not in use yet."""
        around = functions_around(self._source, node)
        if not around:
            return not self._was_used(node)
        if any(self._makes(function, set()) for function in around):
            return True
        receiver = node.value
        if isinstance(receiver, ast.Name):
            scope = self._source.lookup(self._source.scopes[receiver], receiver.id)
            bindings = [] if scope is None else scope.bindings[receiver.id]
            if all(b.kind == "assign" for b in bindings) and scope is not None and scope.function is around[0]:
                return not self._was_used(node)
        return False

    def sets_up(self, node: ast.AST) -> bool:
        """Whether an assignment stands in a second stage of construction, by the name of its function."""
        around = functions_around(self._source, node)
        return bool(around) and isinstance(around[-1], DEFINITIONS) and _SETS_UP.search(around[-1].name) is not None

    def _was_used(self, node: ast.Attribute) -> bool:
        """Whether methods of the object, or functions that get it, are called before or in a loop with an assignment."""
        receiver = node.value
        if not isinstance(receiver, ast.Name):
            return True
        scope = self._source.lookup(self._source.scopes[receiver], receiver.id)
        loops = set(loops_around(self._source, node))
        for load in self._source.references.get((scope, receiver.id), ()) if scope is not None else ():
            if load is receiver or (isinstance(self._source.parents[load], ast.Attribute) and not self._calls(load)):
                continue
            if start(load) < start(node) or loops & set(loops_around(self._source, load)):
                return True
        return False

    def _calls(self, load: ast.Name) -> bool:
        attribute = self._source.parents[load]
        call = self._source.parents[attribute]
        return isinstance(call, ast.Call) and call.func is attribute

    def _makes(self, function: Function, seen: set[Function]) -> bool:
        """Whether a function is a constructor, or a private method that only constructors call."""
        if isinstance(function, ast.Lambda) or function in seen or class_of(self._source, function) is None:
            return False
        if function.name in PER_OBJECT - {"__enter__"} or function.name == "__setattr__":
            return True
        if not function.name.startswith("_"):
            return False
        seen.add(function)
        calls = self._definitions.calls_of(function)
        uses = self._definitions.uses(function)
        return (
            bool(calls)
            and len(calls) == len(uses)
            and all(
                (around := functions_around(self._source, call)) and self._makes(around[-1], seen) for call in calls
            )
        )

    # ---------------------------------------------------------------- guards

    def _is_guarded(self, node: ast.AST, name: str) -> bool:
        """Whether a place runs only while the name or attribute is not set yet: a lazy value."""
        for child, parent in self._source.ancestors(node):
            if isinstance(parent, DEFINITIONS):
                return self._source.fields[child] == "body" and _returns_before(parent.body, child, name)
            if isinstance(parent, ast.If):
                field = self._source.fields[child]
                asked = _identifiers(parent.test)
                stored = name in asked or (field == "body" and bool(asked & _stored_names(parent.body)))
                if stored and field in ("body", "orelse") and _asks_unset(parent.test) == (field == "body"):
                    return True
            if isinstance(parent, ast.ExceptHandler) and _catches(parent, ("AttributeError", "NameError")):
                return True
            if isinstance(parent, (ast.Assign, ast.AnnAssign)) and _keeps_old(parent.value, name):
                return True
        return False


def _looks_up(node: ast.AST, name: str) -> bool:
    """Whether a node asks a table for a key: `key in table`, `table.get(key)`, `except KeyError`."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], (ast.In, ast.NotIn)) and _spelled(node.comparators[0]) == name
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "get" and _spelled(node.func.value) == name
    return isinstance(node, ast.ExceptHandler) and _catches(node, ("KeyError",))


def _catches(handler: ast.ExceptHandler, errors: tuple[str, ...]) -> bool:
    return isinstance(handler.type, ast.Name) and handler.type.id in errors


def _keeps_old(value: ast.expr | None, name: str) -> bool:
    """Whether a value is the old one where there is one: `x or default`."""
    return isinstance(value, ast.BoolOp) and name in _identifiers(value.values[0])


def _returns_before(body: list[ast.stmt], statement: ast.AST, name: str) -> bool:
    """Whether a function returns before it comes to a statement, where a value is there already."""
    for earlier in body:
        if earlier is statement:
            return False
        if (
            isinstance(earlier, ast.If)
            and isinstance(earlier.body[-1], ast.Return)
            and name in _identifiers(earlier.test)
            and not _asks_unset(earlier.test)
        ):
            return not any(isinstance(n, (ast.Eq, ast.NotEq)) for n in ast.walk(earlier.test))
    return False


def _asks_unset(test: ast.expr) -> bool:
    """Whether a test holds while something is not there yet."""
    if isinstance(test, ast.BoolOp):
        return any(map(_asks_unset, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not isinstance(test.operand, ast.Compare)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return isinstance(test.ops[0], ast.NotIn) or (isinstance(test.ops[0], (ast.Is, ast.Eq)) and none)
    return False


def _identifiers(node: ast.expr) -> set[str]:
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found.add(inner.value)
    return found - {"self", "cls"}


def _stored_names(body: list[ast.stmt]) -> set[str]:
    return {
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for statement in body
        for inner in ast.walk(statement)
        if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Store)
    }


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _spelled(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
