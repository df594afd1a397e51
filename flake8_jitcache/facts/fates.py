"""Question 4: what becomes of it? Follows a jitted callable from where it is made to where it is last seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flake8_jitcache.facts import known
from flake8_jitcache.facts.caches import Caches
from flake8_jitcache.facts.definitions import Definitions, method_kind
from flake8_jitcache.facts.jits import Jits
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import class_of, functions_around, loops_around
from flake8_jitcache.facts.scopes import (
    COMPREHENSIONS,
    DEFINITIONS,
    FUNCTIONS,
    LOOPS,
    Binding,
    Definition,
    Function,
    Source,
)

# A value that is followed further than this is taken as kept: silence, and linear time.
_STEPS = 150

# Methods of a jitted function that stage it ahead of time, and what only looks at it.
_STAGES = frozenset({"lower", "compile", "trace"})
_VIEWS = frozenset({"eval_shape", "as_text", "cost_analysis", "memory_analysis", "compiler_ir", "clear_cache",
                    "__wrapped__", "__name__", "__doc__", "_cache_size", "in_tree", "out_tree", "jaxpr"})  # fmt: skip


class Field(NamedTuple):
    """A field of a record (a named tuple or a dataclass of this file), and the other ones."""

    name: str
    others: frozenset[str]


# Where a value is in a tuple or in a record.
Item = int | Field


class Returned(NamedTuple):
    """A function that gives a value to its caller, or a closure that calls it: then `loops` tells whether that closure
    calls it in a loop. `item` is its place in a returned tuple or record."""

    function: Function
    item: Item | None = None
    loops: bool = False


@dataclass
class Fate:
    """What was seen of one value.

    calls: the calls of it in the same call of its function, once each. looped: those that a loop repeats.
    kept: where it goes to something that outlives the call. passed: where it goes to code that can't be seen.
    returned: the functions that give it to their caller.
    """

    calls: list[ast.AST] = field(default_factory=list)
    looped: list[ast.AST] = field(default_factory=list)
    kept: list[ast.AST] = field(default_factory=list)
    passed: list[ast.AST] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)

    @property
    def outlives(self) -> bool:
        """Whether it may live longer than the call that made it."""
        return bool(self.kept or self.passed or self.returned)


@dataclass
class _Walk:
    """One walk from `home`, where the value is made. A walk inside another shares what it has seen.

    each: the loops that take the value out of a container of such values, once each.
    """

    home: ast.AST
    fate: Fate = field(default_factory=Fate)
    seen: set[object] = field(default_factory=set)
    each: frozenset[ast.AST] = frozenset()

    def within(self, home: ast.AST | None = None) -> _Walk:
        """A walk with a fate of its own that does not go anywhere twice."""
        return _Walk(home or self.home, Fate(), self.seen, self.each)

    def over(self, loop: ast.AST) -> _Walk:
        """The same walk, inside a loop over a container that holds the value."""
        return _Walk(self.home, self.fate, self.seen, self.each | {loop})


class Fates:
    """Follows values through names, containers, closures and the functions of the file."""

    def __init__(self, source: Source, names: Names, jits: Jits, definitions: Definitions, caches: Caches) -> None:
        self._source = source
        self._names = names
        self._jits = jits
        self._definitions = definitions
        self._caches = caches

    def of(self, node: ast.expr, item: Item | None = None) -> Fate:
        """The fate of the value of an expression (or of one item of it, where it is a tuple or a record)."""
        walk = _Walk(node)
        self._read(node, walk, item)
        return walk.fate

    def of_definition(self, definition: Definition, decorator: ast.expr) -> Fate:
        """The fate of a decorated function, seen from the decorator that jits it."""
        walk = _Walk(definition)
        outer = definition.decorator_list[: definition.decorator_list.index(decorator)]
        for other in reversed(outer):
            if not self._is_shell(other) and not self._gives_back(other):
                walk.fate.passed.append(other)
                return walk.fate
        self._definition(definition, walk)
        return walk.fate

    def _gives_back(self, decorator: ast.expr) -> bool:
        """Whether a decorator of this file returns what it decorates, or a closure over it, and keeps it nowhere else."""
        functions = self._definitions.functions(decorator)
        for function in functions:
            parameters = function.args.posonlyargs + function.args.args
            if not parameters:
                return False
            scope = self._source.scope_of_function[function]
            inside = _Walk(function)
            for binding in scope.bindings[parameters[0].arg]:
                for load in self._loads(binding, inside):
                    self._load(load, binding, inside)
            fate = inside.fate
            if fate.kept or fate.passed or any(to.function is not function for to in fate.returned):
                return False
        return bool(functions)

    # ---------------------------------------------------------------- values

    def _read(self, node: ast.expr, walk: _Walk, item: Item | None) -> None:
        """Follow the value of an expression, or one item of it."""
        if item is None:
            self._value(node, walk)
        else:
            self._item(node, item, walk)

    def _value(self, node: ast.expr, walk: _Walk, item: Item | None = None, part: int | None = None) -> None:
        """Follow the value of an expression to where its parent takes it: as the `item` of a tuple or a record, or as
        `part` of each item of what is looped over (`zip`, `enumerate`, `items`)."""
        if len(walk.seen) > _STEPS:
            walk.fate.kept.append(node)
            return
        if (node, item) in walk.seen:
            return
        walk.seen.add((node, item))
        source = self._source
        parent = source.parents[node]
        place = source.fields[node]
        if isinstance(parent, ast.Call):
            if place == "func":
                self._called(parent, walk)
            else:
                self._argument(node, parent, None, walk)
        elif isinstance(parent, ast.keyword):
            call = source.parents[parent]
            if isinstance(call, ast.Call):
                self._argument(node, call, parent, walk)
            else:
                walk.fate.kept.append(parent)  # a keyword of a class statement
        elif isinstance(parent, ast.Attribute):
            self._attribute(parent, walk)
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            for target in targets:
                self._assigned(target, node, walk)
            if isinstance(parent, ast.NamedExpr):
                self._value(parent, walk)
        elif isinstance(parent, ast.Return):
            self._returned(parent, item, walk)
        elif isinstance(parent, ast.Lambda):
            if place == "body":
                self._given_back(parent, item, walk)
            else:
                self._value(parent, walk)  # a default lives as long as its function
        elif isinstance(parent, DEFINITIONS):
            if place == "defaults":
                self._definition(parent, walk)
            else:
                walk.fate.passed.append(parent)  # a decorator made of it, or an annotation
        elif isinstance(parent, (ast.Yield, ast.YieldFrom)):
            walk.fate.kept.append(parent)
        elif isinstance(parent, ast.Tuple):
            assigned = source.parents[parent]
            if isinstance(assigned, ast.Assign) and _is_pairwise(assigned, parent):
                number = parent.elts.index(node)
                for target in assigned.targets:
                    self._assigned(target.elts[number], node, walk)  # type: ignore[attr-defined]
            else:
                self._value(parent, walk, parent.elts.index(node))
        elif isinstance(parent, (ast.List, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.Starred, ast.Await)):
            if isinstance(parent, ast.IfExp) and place == "test":
                return
            self._value(parent, walk)
        elif isinstance(parent, ast.DictComp):
            if place == "value":
                self._value(parent, walk)
            elif place in ("iter", "first iter"):
                self._iterated(node, parent, part, walk)
        elif isinstance(parent, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            if place == "elt":
                self._value(parent, walk)
            elif place in ("iter", "first iter"):
                self._iterated(node, parent, part, walk)
        elif isinstance(parent, ast.Subscript):
            if place == "value":
                self._value(parent, walk)
        elif isinstance(parent, (ast.For, ast.AsyncFor)):
            if place == "iter":
                for binding in self._bound_by(parent.target, part):
                    self._binding(binding, walk.over(parent))
        elif isinstance(parent, ast.AugAssign):
            self._put_into(parent.target, walk)
        elif isinstance(parent, ast.withitem):
            walk.fate.passed.append(parent)
        # Everything else looks at the value (a comparison, a test, an expression statement) and lets it go.

    def _item(self, node: ast.expr, item: Item, walk: _Walk) -> None:
        """Follow one item of what an expression gives: of a tuple, or a field of a record."""
        parent = self._source.parents[node]
        if isinstance(parent, ast.Await):
            self._item(parent, item, walk)
        elif isinstance(parent, ast.Return):
            self._returned(parent, item, walk)
        elif isinstance(parent, ast.Assign):
            for target in parent.targets:
                if isinstance(target, (ast.Tuple, ast.List)):
                    self._unpacked(target, item, node, walk)
                elif isinstance(target, ast.Name):
                    for binding in self._source.bound_at(target):
                        self._binding(binding, walk, item)
                else:
                    walk.fate.kept.append(target)
        elif isinstance(parent, ast.Subscript) and self._source.fields[node] == "value":
            if not isinstance(parent.slice, ast.Constant) or parent.slice.value == item:
                self._value(parent, walk)
        elif isinstance(parent, ast.Attribute) and isinstance(item, Field):
            if parent.attr == item.name:
                self._value(parent, walk)
            elif parent.attr not in item.others:
                walk.fate.kept.append(parent)  # a method of the record
        else:
            self._value(node, walk, item)

    def _unpacked(self, target: ast.Tuple | ast.List, item: Item, node: ast.expr, walk: _Walk) -> None:
        first = [] if isinstance(item, Field) else target.elts[: item + 1]
        if isinstance(item, Field) or len(first) <= item or any(isinstance(e, ast.Starred) for e in first):
            walk.fate.kept.append(target)
        else:
            self._assigned(first[-1], node, walk)

    # ---------------------------------------------------------------- names

    def _assigned(self, target: ast.expr, value: ast.expr, walk: _Walk) -> None:
        if isinstance(target, ast.Name):
            for binding in self._source.bound_at(target):
                self._binding(binding, walk)
        elif isinstance(target, ast.Subscript):
            self._put_into(target.value, walk)
        elif isinstance(target, ast.Starred):
            self._assigned(target.value, value, walk)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:  # an unpacked container of them
                self._assigned(element, value, walk)
        else:
            walk.fate.kept.append(target)

    def _bound_by(self, target: ast.expr, part: int | None) -> list[Binding]:
        """The bindings that a loop's target makes, or that this part of it makes."""
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if part is not None and part < len(elements) and not any(isinstance(e, ast.Starred) for e in elements):
            target = elements[part]
        names = [n for n in ast.walk(target) if isinstance(n, ast.Name)]
        return [b for name in names for b in self._source.bound_at(name)]

    def _binding(self, binding: Binding, walk: _Walk, item: Item | None = None) -> None:
        """Follow all that may read a binding, or an item of it."""
        if (binding, item) in walk.seen:
            return
        walk.seen.add((binding, item))
        scope = binding.scope
        if scope.kind == "class":
            walk.fate.kept.append(binding.node)
            return
        if scope.kind == "module":
            function = self._source.scopes[binding.node].function
            repeated = bool(loops_around(self._source, binding.node)) or isinstance(
                self._source.parents.get(binding.node), LOOPS
            )
            if function is not None or not repeated:
                walk.fate.kept.append(binding.node)
                return
        elif self._source.scopes[binding.node].function is not scope.function and binding.kind != "parameter":
            walk.fate.kept.append(binding.node)  # a nonlocal of a function around: it outlives this call
            return
        for load in self._loads(binding, walk):
            self._load(load, binding, walk, item)

    def _loads(self, binding: Binding, walk: _Walk) -> Iterator[ast.Name]:
        """The loads of a binding, as far as the walk goes."""
        for load in self._source.loads_of(binding):
            if len(walk.seen) > _STEPS:
                walk.fate.kept.append(load)
                return
            yield load

    def _load(self, load: ast.Name, binding: Binding, walk: _Walk, item: Item | None = None) -> None:
        """Follow one load of a name, in the same function or in one that closes over it."""
        owner = binding.scope.function
        inner = self._source.scopes[load].function
        if inner is owner:
            self._read(load, walk, item)
            return
        # A closure: the function directly inside the owner that holds the load has the fate that counts.
        closure: Function | None = inner
        for function in _functions_from(self._source, load):
            if function is owner:
                break
            closure = function
        if closure is None or binding.scope.kind == "module":
            walk.fate.kept.append(load)
            return
        self._closure(closure, load, walk, item)

    def _closure(self, closure: Function, load: ast.Name, walk: _Walk, item: Item | None) -> None:
        """A value that a nested function reads: kept if that function is, called where that function is called."""
        inside = walk.within()
        self._read(load, inside, item)
        around = walk.within()
        if isinstance(closure, ast.Lambda):
            self._value(closure, around)
        else:
            decorated = [d for d in closure.decorator_list if self._jits.maker(d) is None and not self._is_shell(d)]
            if decorated:
                walk.fate.passed.append(decorated[0])
                return
            self._definition(closure, around)
        outer = around.fate
        walk.fate.kept += outer.kept or (inside.fate.kept if (outer.calls or outer.looped) else [])
        walk.fate.passed += outer.passed or (inside.fate.passed if (outer.calls or outer.looped) else [])
        walk.fate.returned += [to._replace(loops=True) if inside.fate.looped else to for to in outer.returned]
        if inside.fate.returned and (outer.calls or outer.looped):
            walk.fate.kept.append(load)  # handed out by the closure; what its callers do with it is theirs
        if inside.fate.calls or inside.fate.looped:
            if outer.looped:
                walk.fate.looped += outer.looped
            elif outer.calls and inside.fate.looped:
                walk.fate.looped += inside.fate.looped
            elif self._calls_itself(closure):
                walk.fate.looped += outer.calls
            else:
                walk.fate.calls += outer.calls

    def _calls_itself(self, closure: Function) -> bool:
        calls = self._definitions.calls_of(closure)
        return any(closure in functions_around(self._source, call) for call in calls)

    def _definition(self, definition: Definition, walk: _Walk) -> None:
        """Follow a nested function by its name."""
        scope = self._source.scopes[definition]
        if definition.name in scope.globals:
            walk.fate.kept.append(definition)
            return
        for binding in scope.bindings.get(definition.name, ()):
            if binding.node is definition:
                self._binding(binding, walk)

    # ---------------------------------------------------------------- calls

    def _called(self, call: ast.Call, walk: _Walk) -> None:
        if self._is_looped(call, walk):
            walk.fate.looped.append(call)
        else:
            walk.fate.calls.append(call)

    def _is_looped(self, node: ast.AST, walk: _Walk) -> bool:
        """Whether a loop that neither makes the value anew nor takes each one once repeats a node."""
        making = loops_around(self._source, walk.home)
        return any(
            self._is_guarded(walk.home, loop, node) if loop in making else loop not in walk.each
            for loop in loops_around(self._source, node)
        )

    def _is_guarded(self, home: ast.AST, loop: ast.AST, node: ast.AST) -> bool:
        """Whether a value is made in a branch of a loop's body and used outside of that branch: made on some
        iterations, it serves the others too."""
        source = self._source
        around_use = {id(parent) for _, parent in source.ancestors(node)} | {id(node)}
        statement = source.statement(home)
        for child, parent in source.ancestors(statement):
            if parent is loop:
                return False
            if (
                isinstance(parent, ast.If)
                and source.fields[child] in ("body", "orelse")
                and id(parent) not in around_use
            ):
                return True
        return False

    def _argument(self, node: ast.expr, call: ast.Call, keyword: ast.keyword | None, walk: _Walk) -> None:
        """A value that is passed to a call."""
        fate = walk.fate
        dotted = self._names.dotted(call.func)
        if self._jits.maker(call.func) is not None or self._jits.maker(call) is not None:
            fate.passed.append(call)  # the outer jit is judged instead
            return
        if dotted & known.LOOKERS:
            return
        if dotted & known.MAPS or _ends_with(dotted, ("tree_map",)):
            fate.looped.append(call)
            return
        control = dotted & known.CONTROL_FLOW.keys()
        if control & known.DEVICE_LOOPS:
            fate.looped.append(call)
            return
        if control or dotted & known.IMMEDIATE:
            self._called(call, walk)
            return
        if dotted & known.TRANSFORMS or dotted & known.PARTIALS or dotted & known.SHELLS:
            self._value(call, walk)
            return
        if isinstance(call.func, ast.Call) and "functools.wraps" in self._names.dotted(call.func.func):
            self._value(call, walk)
            return
        if "functools.wraps" in dotted:
            return
        if dotted & {"zip", "enumerate"}:
            self._value(call, walk, part=call.args.index(node) if "zip" in dotted and node in call.args else 1)
            return
        if dotted & {"list", "tuple", "dict", "set", "iter", "reversed", "frozenset"}:
            self._value(call, walk)
            return
        if dotted & {"setattr"}:
            fate.kept.append(call)
            return
        if isinstance(call.func, ast.Attribute) and call.func.attr in known.ADDERS and not dotted:
            self._put_into(call.func.value, walk)
            return
        if _is_solver(dotted):
            fate.looped.append(call)
            return
        functions = self._definitions.functions(call.func)
        if functions:
            for function in functions:
                self._into_parameter(node, call, keyword, function, walk)
            return
        field = self._field(node, call, keyword)
        if field is not None:
            self._item(call, field, walk)
            return
        fate.passed.append(call)

    def _field(self, node: ast.expr, call: ast.Call, keyword: ast.keyword | None) -> Field | None:
        """The field that an argument becomes, where a call makes a record of this file."""
        cls = self._definitions.class_of_call(call)
        if cls is None or not self._is_record(cls):
            return None
        names = [s.target.id for s in cls.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        given = call.args.index(node) if keyword is None and node in call.args else None
        if any(isinstance(a, ast.Starred) for a in call.args) or (given is not None and given >= len(names)):
            return None
        name = names[given] if given is not None else keyword.arg if keyword is not None else None
        return Field(name, frozenset(names)) if name in names and name is not None else None

    def _is_record(self, cls: ast.ClassDef) -> bool:
        """Whether a class is a plain named tuple or dataclass: what it is given, it holds."""
        if any(isinstance(s, DEFINITIONS) and s.name in ("__init__", "__post_init__", "__new__") for s in cls.body):
            return False
        made_by = {self._names.dotted(d.func if isinstance(d, ast.Call) else d) for d in cls.decorator_list}
        if any(dotted & known.RECORD_DECORATORS for dotted in made_by):
            return not cls.bases
        return any("typing.NamedTuple" in self._names.dotted(base) for base in cls.bases)

    def _into_parameter(
        self, node: ast.expr, call: ast.Call, keyword: ast.keyword | None, function: Function, walk: _Walk
    ) -> None:
        """A value that is passed to a function of this file: follow the parameter there."""
        parameter = self._parameter_for(node, call, keyword, function)
        if parameter is None or (isinstance(function, DEFINITIONS) and self._opaque(function)):
            walk.fate.passed.append(call)
            return
        scope = self._source.scope_of_function[function]
        inside = walk.within(function)
        for binding in scope.bindings.get(parameter, ()):
            if binding.kind == "parameter":
                for load in self._loads(binding, inside):
                    self._load(load, binding, inside)
        looped = self._is_looped(call, walk)
        walk.fate.kept += inside.fate.kept
        walk.fate.passed += inside.fate.passed
        if inside.fate.looped or (inside.fate.calls and looped):
            walk.fate.looped.append(call)
        elif inside.fate.calls:
            walk.fate.calls.append(call)
        for to in inside.fate.returned:
            if to.function is function:
                self._value(call, walk, to.item)
            else:
                walk.fate.kept.append(call)

    def _opaque(self, function: Definition) -> bool:
        """Whether what a function does to its arguments can't be read off its body."""
        return any(
            not self._is_shell(decorator) and self._jits.maker(decorator) is None
            for decorator in function.decorator_list
        )

    def _parameter_for(
        self, node: ast.expr, call: ast.Call, keyword: ast.keyword | None, function: Function
    ) -> str | None:
        if keyword is not None:
            return keyword.arg
        if node not in call.args or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        index = call.args.index(node)
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if (
            isinstance(function, DEFINITIONS)
            and isinstance(call.func, ast.Attribute)
            and class_of(self._source, function) is not None
            and method_kind(function, self._names) != "static"
        ):
            names = names[1:]
        return names[index] if index < len(names) else None

    def _put_into(self, container: ast.expr, walk: _Walk) -> None:
        """A value that is put into a container: followed with it where the container is this function's own."""
        inner = container
        while isinstance(inner, (ast.Subscript, ast.Call)):
            inner = inner.value if isinstance(inner, ast.Subscript) else inner.func
            if isinstance(inner, ast.Attribute) and inner.attr in known.ADDERS:
                inner = inner.value
        if not isinstance(inner, ast.Name):
            walk.fate.kept.append(container)
            return
        owner = self._source.lookup(self._source.scopes[inner], inner.id)
        here = self._source.scopes[inner].function
        if owner is None or owner.kind != "function" or owner.function is not here:
            walk.fate.kept.append(container)
            return
        bindings = self._source.reaching(inner)
        if any(b.kind not in ("assign",) or not _is_container(b.value) for b in bindings) or not bindings:
            walk.fate.kept.append(container)
            return
        # The container is older than the loop that fills it: what loops over it later loops over all.
        for binding in bindings:
            self._binding(binding, walk)

    # ---------------------------------------------------------------- attributes

    def _attribute(self, node: ast.Attribute, walk: _Walk) -> None:
        parent = self._source.parents[node]
        called = isinstance(parent, ast.Call) and self._source.fields[node] == "func"
        if node.attr in _VIEWS:
            return
        if node.attr in _STAGES:
            if called and isinstance(parent, ast.Call):
                self._value(parent, walk)
            return
        if called and isinstance(parent, ast.Call):
            if node.attr == "items":
                self._value(parent, walk, part=1)
            elif node.attr in ("values", "get", "pop", "copy", "setdefault"):
                self._value(parent, walk)
            elif node.attr in ("__call__", "call"):
                self._called(parent, walk)
            elif node.attr in known.ADDERS or node.attr in ("keys", "clear", "sort", "reverse", "remove"):
                return
            else:
                walk.fate.passed.append(parent)
        elif isinstance(node.ctx, ast.Load) and node.attr not in ("fun", "fn", "func"):
            walk.fate.passed.append(node)

    def _iterated(self, node: ast.AST, comprehension: ast.AST, part: int | None, walk: _Walk) -> None:
        """A container that a comprehension loops over."""
        assert isinstance(comprehension, COMPREHENSIONS)
        scope = self._source.scope_of_function[comprehension]
        generator = next(g for g in comprehension.generators if g.iter is node)
        for binding in self._bound_by(generator.target, part):
            for load in self._source.references.get((scope, binding.name), ()):
                if self._source.scopes[load].function is scope.function:
                    self._value(load, walk.over(comprehension))
                else:
                    walk.fate.kept.append(load)

    def _returned(self, node: ast.Return, item: Item | None, walk: _Walk) -> None:
        for function in _functions_from(self._source, node):
            self._given_back(function, item, walk)
            return

    def _given_back(self, function: Function, item: Item | None, walk: _Walk) -> None:
        walk.fate.returned.append(Returned(function, item))

    def _is_shell(self, decorator: ast.expr) -> bool:
        """Whether a decorator gives back what it decorates, or a shell that calls it."""
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = self._names.dotted(node)
        if dotted & known.PARTIALS and isinstance(decorator, ast.Call) and decorator.args:
            return self._is_shell(decorator.args[0])
        return bool(dotted & known.TRANSFORMS or dotted & known.SHELLS or "functools.wraps" in dotted)


def _functions_from(source: Source, node: ast.AST) -> list[Function]:
    return [
        parent
        for child, parent in source.ancestors(node)
        if isinstance(parent, FUNCTIONS) and source.fields[child] == "body"
    ]


def _is_pairwise(assign: ast.Assign, value: ast.Tuple) -> bool:
    """Whether each target takes one element of a tuple."""
    return assign.value is value and all(
        isinstance(t, (ast.Tuple, ast.List))
        and len(t.elts) == len(value.elts)
        and not any(isinstance(e, ast.Starred) for e in (*t.elts, *value.elts))
        for t in assign.targets
    )


def _is_container(value: ast.expr | None) -> bool:
    """Whether an expression makes a new container."""
    return isinstance(value, (ast.List, ast.Dict, ast.Set, *COMPREHENSIONS)) or (
        isinstance(value, ast.Call)
        and (
            (
                isinstance(value.func, ast.Name)
                and value.func.id in ("list", "dict", "set", "defaultdict", "OrderedDict", "deque")
            )
            or (isinstance(value.func, ast.Attribute) and value.func.attr in ("defaultdict", "OrderedDict", "deque"))
        )
    )


def _ends_with(dotted: frozenset[str], parts: tuple[str, ...]) -> bool:
    return any(name.rpartition(".")[2] in parts for name in dotted)


def _is_solver(dotted: frozenset[str]) -> bool:
    return any(name.startswith(("scipy.", "jaxopt.", "optimistix.", "diffrax.")) for name in dotted)
