"""Where a jitted callable goes in its file: each call of it, and each place where it gets out of sight."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import Definitions, method_kind
from flake8_jitcache.facts.jits import Creation, Jits
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import class_of, functions_around, loops_around
from flake8_jitcache.facts.scopes import COMPREHENSIONS, DEFINITIONS, FUNCTIONS, Binding, Definition, Function, Source

# Methods of a jitted function that trace it with the arguments they are given.
STAGES = frozenset({"lower", "trace", "eval_shape"})
_STEPS = 200
_KEEPERS = (*FUNCTIONS, *COMPREHENSIONS, ast.Yield, ast.YieldFrom, ast.List, ast.Dict, ast.Set, ast.Starred)


@dataclass(frozen=True)
class Use:
    """One place where a jitted callable is used.

    call: it is called there. staged: `.lower(...)` and such are. passed: it is an argument of a call.
    kept: it goes into an attribute, a container or to a consumer of a generator. returned: a function gives it back.
    bound: the call passes the first parameter by itself, as `self`. exact: it is called as it is, not through a
    transform or a partial that changes what it takes.
    """

    node: ast.expr | ast.stmt
    kind: Literal["call", "staged", "passed", "kept", "returned"]
    bound: bool = False
    exact: bool = True


class Uses:
    """Follows jitted callables forward, through names, attributes, factories and transforms of the file."""

    def __init__(self, source: Source, names: Names, jits: Jits, definitions: Definitions) -> None:
        self._source = source
        self._names = names
        self._jits = jits
        self._definitions = definitions
        self._of: dict[ast.AST, list[Use]] = {}

    def of(self, creation: Creation) -> list[Use]:
        """The uses of what a creation makes."""
        if creation.node not in self._of:
            walk = _Walk(self)
            if creation.definition is not None:
                walk.definition(creation.definition)
            else:
                walk.value(creation.node, None)
            self._of[creation.node] = walk.found
        return self._of[creation.node]

    def of_function(self, function: Function) -> list[Use]:
        """The uses of a function of the file by its name, or of a lambda where it stands."""
        if function not in self._of:
            walk = _Walk(self)
            if isinstance(function, ast.Lambda):
                walk.value(function, None)
            else:
                walk.definition(function)
            self._of[function] = walk.found
        return self._of[function]

    # ---------------------------------------------------------------- what refers to what

    def loads(self, binding: Binding) -> list[ast.Name]:
        """The loads that may see a binding."""
        return self._source.loads_of(binding)

    def is_shadowed(self, binding: Binding, load: ast.Name) -> bool:
        """Whether a load stands in a function that is called where it stands, as by `timeit`, and another binding of the
        name comes in between on each way there."""
        around = functions_around(self._source, load)
        if not around or not isinstance(around[0], ast.Lambda) or around[0] is binding.scope.node:
            return False
        holder = self._source.parents[around[0]]
        call = self._source.parents[holder] if isinstance(holder, ast.keyword) else holder
        if not isinstance(call, ast.Call) or self._source.scopes[call] is not binding.scope:
            return False
        if call.func is not around[0] and not self._names.dotted(call.func) & known.MAPS:
            return False
        if (call.lineno, call.col_offset) < binding.effective:
            return not set(loops_around(self._source, call)) & set(loops_around(self._source, binding.node))
        own = self._source.statement(call)
        around_call = {own, *(parent for _, parent in self._source.ancestors(own))}
        for other in binding.scope.bindings[binding.name]:
            statement = self._source.statement(other.node)
            block = self._source.parents[statement]
            same = block in around_call or isinstance(block, ast.Module)
            beside = any(
                self._source.parents.get(inner) is block
                and self._source.fields.get(inner) == self._source.fields.get(statement)
                for inner in around_call
            )
            if same and beside and binding.effective < other.effective <= (call.lineno, call.col_offset):
                return True
        return False

    def bindings_at(self, target: ast.Name) -> list[Binding]:
        """The binding that a stored name makes."""
        return self._source.bound_at(target)

    def reads_of(self, target: ast.Attribute) -> Iterator[ast.Attribute]:
        """The reads in the file of an attribute that is stored on an instance or a class of it."""
        owner = self._definitions.class_behind(target.value)
        if owner is None:
            return
        for node in self._source.attributes.get(target.attr, ()):
            if isinstance(node.ctx, ast.Load) and self._definitions.class_behind(node.value) is owner:
                yield node

    def looks_up(self, attribute: ast.Attribute, method: Definition) -> bool:
        """Whether an attribute is a lookup of a method."""
        return self._definitions.method_of(attribute) is method

    def calls_of_instances(self, method: Definition) -> list[ast.expr]:
        """What is called in the file where an object is called whose `__call__` a method is."""
        return self._called_instances.get(method, [])

    @cached_property
    def _called_instances(self) -> dict[Definition, list[ast.expr]]:
        found: dict[Definition, list[ast.expr]] = {}
        for call in self._source.calls:
            if isinstance(call.func, (ast.Name, ast.Call)) and not self._definitions.is_class(call.func):
                owner = self._definitions.class_behind(call.func)
                method = None if owner is None else self._definitions.method(owner, "__call__")
                if method is not None:
                    found.setdefault(method, []).append(call.func)
        return found

    def is_bound(self, attribute: ast.expr, method: Definition) -> bool:
        """Whether a lookup of a method gives it bound to an object."""
        kind = method_kind(method, self._names)
        if not isinstance(attribute, ast.Attribute) or kind == "static":
            return False
        return kind == "class" or not self._definitions.is_class(attribute.value)


class _Walk:
    def __init__(self, uses: Uses) -> None:
        self.found: list[Use] = []
        self._uses = uses
        self._source = uses._source
        self._seen: set[object] = set()

    def definition(self, definition: Definition) -> None:
        """Follow a decorated function by its name."""
        if class_of(self._source, definition) is not None:
            for node in self._source.attributes.get(definition.name, ()):
                if isinstance(node.ctx, ast.Load) and self._uses.looks_up(node, definition):
                    self.value(node, None, bound=self._uses.is_bound(node, definition))
            if definition.name == "__call__":
                for called in self._uses.calls_of_instances(definition):
                    self.value(called, None, bound=True)
        scope = self._source.scopes[definition]
        if definition.name in scope.globals:
            scope = self._source.module
        for binding in scope.bindings.get(definition.name, ()):
            if binding.node is definition:
                self._binding(binding, None, exact=True)

    def value(self, node: ast.expr, index: int | None, *, bound: bool = False, exact: bool = True) -> None:
        """Follow the value of an expression, or its item `index` where that is what carries the callable."""
        if node in self._seen or len(self._seen) > _STEPS:
            return
        self._seen.add(node)
        parent = self._source.parents[node]
        field = self._source.fields[node]
        if isinstance(parent, ast.Call) and field == "func":
            if index is None:
                self.found.append(Use(parent, "call", bound, exact))
        elif isinstance(parent, (ast.Call, ast.keyword)):
            self._argument(node, parent)
        elif isinstance(parent, ast.Attribute):
            self._attribute(parent, bound, exact)
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            exact = exact and not bound  # a bound method in a name takes its object along, unseen by the call
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                self._assigned(target, node, index, exact)
            if isinstance(parent, ast.NamedExpr):
                self.value(parent, index, exact=exact)
        elif isinstance(parent, ast.Return):
            self._returned(parent, node, index, exact)
        elif isinstance(parent, ast.Tuple):
            self._in_tuple(parent, node, exact)
        elif isinstance(parent, (ast.IfExp, ast.BoolOp)) and field != "test":
            self.value(parent, index, bound=bound, exact=exact)
        elif isinstance(parent, ast.Subscript) and field == "value":
            if index is not None and isinstance(parent.slice, ast.Constant) and parent.slice.value == index:
                self.value(parent, None, exact=exact)
        elif isinstance(parent, ast.Lambda) and field == "body":
            self.found.append(Use(node, "returned"))
        elif isinstance(parent, _KEEPERS):
            self.found.append(Use(node, "kept"))

    def _argument(self, node: ast.expr, parent: ast.Call | ast.keyword) -> None:
        call = parent if isinstance(parent, ast.Call) else self._source.parents[parent]
        if not isinstance(call, ast.Call):
            return
        dotted = self._uses._names.dotted(call.func)
        is_first = bool(call.args) and call.args[0] is node
        if dotted & known.SHELLS and is_first:
            self.value(call, None)
            return
        if isinstance(call.func, ast.Attribute) and call.func.attr in known.ADDERS and not dotted:
            self.found.append(Use(node, "kept"))
            return
        self.found.append(Use(call, "passed"))
        if is_first and (dotted & (known.TRANSFORMS | known.PARTIALS) or self._uses._jits.maker(call.func) is not None):
            self.value(call, None, exact=False)

    def _attribute(self, node: ast.Attribute, bound: bool, exact: bool) -> None:
        parent = self._source.parents[node]
        if node.attr in STAGES and isinstance(parent, ast.Call) and parent.func is node:
            self.found.append(Use(parent, "staged", bound, exact))

    def _assigned(self, target: ast.expr, value: ast.expr, index: int | None, exact: bool) -> None:
        if isinstance(target, ast.Name):
            for binding in self._uses.bindings_at(target):
                self._binding(binding, index, exact=exact)
        elif isinstance(target, ast.Attribute):
            self.found.append(Use(value, "kept"))
            for read in self._uses.reads_of(target):
                self.value(read, index, exact=exact)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if index is not None and index < len(target.elts):
                before = target.elts[: index + 1]
                if not any(isinstance(e, ast.Starred) for e in before):
                    self._assigned(target.elts[index], value, None, exact)
        else:
            self.found.append(Use(value, "kept"))

    def _binding(self, binding: Binding, index: int | None, *, exact: bool) -> None:
        if (binding, index) in self._seen:
            return
        self._seen.add((binding, index))
        for load in self._uses.loads(binding):
            if not self._uses.is_shadowed(binding, load):
                self.value(load, index, exact=exact)

    def _in_tuple(self, parent: ast.Tuple, node: ast.expr, exact: bool) -> None:
        number = parent.elts.index(node)
        holder = self._source.parents[parent]
        if isinstance(holder, ast.Assign):
            for target in holder.targets:
                self._assigned(target, node, number, exact)
        elif isinstance(holder, ast.Return):
            self._returned(holder, node, number, exact)
        else:
            self.found.append(Use(node, "kept"))

    def _returned(self, statement: ast.Return, node: ast.expr, index: int | None, exact: bool) -> None:
        """A function that gives it back: follow what the function's callers in the file do with it."""
        self.found.append(Use(statement, "returned"))
        around = functions_around(self._source, statement)
        if not around or around[0] in self._seen:
            return
        self._seen.add(around[0])
        factory = around[0]
        if not isinstance(factory, DEFINITIONS):
            return
        if any("property" in self._uses._names.dotted(d) for d in factory.decorator_list):
            return
        for call in self._uses._definitions.calls_of(factory):
            if factory in self._uses._definitions.functions(call.func):
                self.value(call, index, exact=exact)
