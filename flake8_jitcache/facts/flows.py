"""Where the value of an expression goes: through arithmetic, containers, names and functions of the file, to its ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from flake8_jitcache.facts import known
from flake8_jitcache.facts.array_functions import (
    ARRAY_ARGUMENTS,
    SHAPE_METHODS,
    STATIC_ATTRIBUTES,
    STATIC_KEYWORDS,
    STATIC_POSITIONS,
)
from flake8_jitcache.facts.definitions import Definitions
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Function, Source

Kind = Literal["result", "test", "count", "shape", "number", "called", "method", "index", "unknown", "nowhere"]

_STEPS = 120
# Calls whose result is one of what they are given, or made of it.
_PASSING = frozenset(
    {"min", "max", "sum", "abs", "tuple", "list", "dict", "reversed", "sorted", "zip", "enumerate", "pow"}
)
# Calls that need a number now, while tracing.
_NUMBERS = frozenset(
    {"int", "float", "bool", "complex", "round", "math.ceil", "math.floor", "math.sqrt", "math.log", "len"}
)
_OUTPUT = frozenset(
    {"print", "repr", "str", "logging", "warnings.warn", "id", "type", "isinstance", "hasattr", "callable"}
)
_LOGS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


@dataclass(frozen=True)
class End:
    """Where a value ends, or where it can't be followed.

    result: a function returns it. test: it decides what runs. count: it is a length of a loop. shape: it is a shape, an
    axis or a length of an array. number: it is made a number of Python. called: it is called. method: a method of it is
    called. index: it picks an item of something. nowhere: its value plays no part (printed, dropped, added to itself).
    """

    kind: Kind
    node: ast.AST


class Flows:
    """Follows values of one module forward."""

    def __init__(self, source: Source, names: Names, definitions: Definitions) -> None:
        self._source = source
        self._names = names
        self._definitions = definitions
        self._ends: dict[ast.AST, list[End]] = {}

    def ends(self, node: ast.expr) -> list[End]:
        """Where the value of an expression ends; in source order of the walk, each place once."""
        if node not in self._ends:
            self._ends[node] = list(self._follow(node))
        return self._ends[node]

    def _follow(self, first: ast.expr) -> Iterator[End]:
        seen: set[ast.AST] = set()
        pending: list[ast.AST] = [first]
        while pending and len(seen) < _STEPS:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            step = self._step(node)
            for one in [step] if isinstance(step, End) else step:
                if isinstance(one, End):
                    yield one
                else:
                    pending.append(one)

    def _step(self, node: ast.AST) -> End | Sequence[ast.AST | End]:
        """Where the value of a node ends, or the nodes whose value it becomes."""
        parent = self._source.parents[node]
        field = self._source.fields[node]
        if isinstance(
            parent, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)
        ):
            return [parent]
        if isinstance(parent, ast.Compare):
            identity = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in parent.ops)
            return End("nowhere", parent) if identity else [parent]
        if isinstance(parent, ast.IfExp):
            return End("test", parent) if field == "test" else [parent]
        if isinstance(parent, (ast.If, ast.While, ast.Assert)) or field == "ifs":
            return End("test", parent)
        if isinstance(parent, ast.comprehension):
            return End("unknown", parent)
        if isinstance(parent, ast.Subscript):
            return [parent] if field == "value" else End("index", parent)
        if isinstance(parent, ast.Slice):
            return End("index", parent)
        if isinstance(parent, ast.Attribute):
            return self._attribute(parent)
        if isinstance(parent, (ast.Call, ast.keyword)):
            return self._argument(node, parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            return self._assigned(node, parent)
        if isinstance(parent, (ast.Return, ast.Yield, ast.YieldFrom)) or (
            isinstance(parent, ast.Lambda) and field == "body"
        ):
            return self._result(parent)
        if isinstance(parent, (ast.Expr, ast.FormattedValue, ast.Raise)):
            return End("nowhere", parent)
        return End("unknown", parent)

    def _attribute(self, attribute: ast.Attribute) -> End | list[ast.AST]:
        if attribute.attr in STATIC_ATTRIBUTES:
            return End("nowhere", attribute)
        call = self._source.parents[attribute]
        if isinstance(call, ast.Call) and call.func is attribute:
            if attribute.attr in SHAPE_METHODS or attribute.attr in ("at", "set", "get", "dot", "clip", "copy"):
                return [call]
            return End("method", call)
        return [attribute]

    def _argument(self, node: ast.AST, parent: ast.Call | ast.keyword) -> End | Sequence[ast.AST | End]:
        call = parent if isinstance(parent, ast.Call) else self._source.parents[parent]
        if not isinstance(call, ast.Call):
            return End("unknown", parent)
        if call.func is node:
            return End("called", call)
        keyword = parent.arg if isinstance(parent, ast.keyword) else None
        position = call.args.index(node) if keyword is None and node in call.args else None
        dotted = self._names.dotted(call.func)
        if dotted == {"range"}:
            return End("count", call)
        if dotted & _NUMBERS:
            return [End("number", call), call]
        if self.is_output(call):
            return End("nowhere", call)
        if dotted & _PASSING:
            return [call]
        if dotted & known.TRANSFORMS and position == 0:
            return End("called", call)
        if dotted and all(name.startswith("jax.") for name in dotted):
            return End("shape", call) if self._is_shape(dotted, position, keyword) else [call]
        if not dotted and isinstance(call.func, ast.Attribute) and call.func.attr in SHAPE_METHODS:
            return End("shape", call) if keyword is None or keyword in STATIC_KEYWORDS else [call]
        loads: list[ast.AST] = []
        functions = self._definitions.functions(call.func)
        for function in functions:
            loads += self._loads_of_parameter(call, function, node)
        return loads if functions else End("unknown", call)

    def is_output(self, call: ast.Call) -> bool:
        """Whether a call only prints or logs what it is given, or asks for its type."""
        dotted = self._names.dotted(call.func)
        if dotted & _OUTPUT or any(name.startswith("logging.") for name in dotted):
            return True
        return (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in _LOGS
            and isinstance(self._source.parents[call], ast.Expr)
        )

    @staticmethod
    def _is_shape(dotted: frozenset[str], position: int | None, keyword: str | None) -> bool:
        if keyword is not None:
            return keyword in STATIC_KEYWORDS
        return all(
            position in STATIC_POSITIONS.get(name, ())
            or (name.startswith("jax.numpy.") and position is not None and position >= ARRAY_ARGUMENTS.get(name, 99))
            for name in dotted
        )

    def _loads_of_parameter(self, call: ast.Call, function: Function, node: ast.AST) -> Iterator[ast.AST]:
        scope = self._source.scope_of_function[function]
        for name, bindings in scope.bindings.items():
            if bindings[0].kind == "parameter" and self._definitions.argument(call, function, name) is node:
                yield from self._source.loads_of(bindings[0])

    def _assigned(
        self, node: ast.AST, statement: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign
    ) -> End | list[ast.AST]:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        found: list[ast.AST] = [statement] if isinstance(statement, ast.NamedExpr) else []
        pending = list(targets)
        while pending:
            target = pending.pop()
            if isinstance(target, (ast.Tuple, ast.List)):
                pending += target.elts
            elif isinstance(target, ast.Starred):
                pending.append(target.value)
            elif isinstance(target, ast.Name):
                for binding in self._source.bound_at(target):
                    found += self._loads_here(node, binding)
            elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                found += [load for b in self._source.reaching(target.value) for load in self._loads_here(node, b)]
        return found or End("nowhere", statement)

    def _loads_here(self, node: ast.AST, binding: object) -> list[ast.AST]:
        """The loads of a name that run in the same function, or inside it."""
        around = functions_around(self._source, node)
        return [
            load
            for load in self._source.loads_of(binding)  # type: ignore[arg-type]
            if not around or around[0] in functions_around(self._source, load)
        ]

    def _result(self, parent: ast.AST) -> End | list[ast.AST]:
        """What a function gives back: followed where the file calls it by name, else it is the result."""
        around = functions_around(self._source, parent)
        function: Function | None = parent if isinstance(parent, ast.Lambda) else around[0] if around else None
        if not isinstance(function, DEFINITIONS) or function.decorator_list:
            return End("result", parent)
        calls: list[ast.AST] = [
            call
            for call in self._definitions.calls_of(function)
            if function in self._definitions.functions(call.func)
            and any(isinstance(parent, FUNCTIONS) for _, parent in self._source.ancestors(call))
        ]
        uses = self._definitions.uses(function)
        return calls if calls and len(calls) == len(uses) else End("result", parent)
