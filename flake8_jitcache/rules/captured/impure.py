"""JIT205: what traced code reads of the outside world (random numbers, the time, an iterator, the environment)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.scopes import Function
from flake8_jitcache.rules.captured.reach import Reach, Region

_RANDOM = "a random number"
_TIME = "the time"
_ENVIRONMENT = "the environment"
_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator", "random.Random"}
)
_SETTERS = frozenset({"seed", "set_state", "setstate"})
_TIMES = frozenset(
    f"time.{name}" for name in "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time".split()
) | {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"}
_ENVIRONMENTS = frozenset({"os.environ.get", "os.getenv"})
_UNIQUE = frozenset({"uuid.uuid1", "uuid.uuid4", "os.urandom", "secrets.token_hex", "secrets.randbelow"})


@dataclass(frozen=True)
class Impure:
    """A read in traced code whose value is another one each time: the node, how it is spelled, and what it gives."""

    node: ast.expr
    what: str


class Impurities:
    """Finds impure reads in the traced code of one module."""

    def __init__(self, module: Module, reach: Reach) -> None:
        self._module = module
        self._source = module.source
        self._reach = reach

    def of(self, region: Region) -> Iterator[Impure]:
        """The impure reads of a trace whose value reaches its result, in source order."""
        found = [
            impure for function in region.functions for impure in self._in(function) if self.reaches_result(impure.node)
        ]
        return iter(sorted(found, key=lambda impure: (impure.node.lineno, impure.node.col_offset)))

    def reaches_result(self, node: ast.expr) -> bool:
        """Whether the value of an expression in traced code is part of what the jitted function gives back."""
        return any(end.kind == "result" for end in self._module.flows.ends(node))

    def _in(self, function: Function) -> Iterator[Impure]:
        scopes = set(self._reach.scopes_in(function))
        for call in self._calls:
            if self._source.scopes[call] in scopes:
                yield Impure(call, self._what(call) or "")
        for node in self._environ:
            if self._source.scopes[node] in scopes:
                yield Impure(node, _ENVIRONMENT)

    @cached_property
    def _calls(self) -> list[ast.Call]:
        """The calls that may be impure, by the last part of what they call."""
        return [call for call in self._source.calls if self._what(call) is not None]

    @cached_property
    def _environ(self) -> list[ast.expr]:
        return [
            parent
            for node in self._source.attributes.get("environ", ())
            if self._module.names.dotted(node) == {"os.environ"}
            and isinstance(parent := self._source.parents[node], ast.Subscript)
            and isinstance(parent.ctx, ast.Load)
        ]

    def _what(self, call: ast.Call) -> str | None:
        dotted = self._module.names.dotted(call.func)
        for name in dotted:
            if name in _TIMES:
                return _TIME
            if name in _ENVIRONMENTS:
                return _ENVIRONMENT
            if name in _UNIQUE:
                return _RANDOM
            if name in _GENERATORS:
                return None
            library, _, last = name.rpartition(".")
            if library in ("numpy.random", "random") and last not in _SETTERS and not last[:1].isupper():
                return _RANDOM
        if dotted == {"next"} and len(call.args) == 1 and self._is_outside(call.args[0], call):
            return "the next item of an iterator"
        if isinstance(call.func, ast.Attribute) and not dotted and self._is_generator(call.func.value, call):
            return None if call.func.attr in _SETTERS else _RANDOM
        return None

    def _is_outside(self, node: ast.expr, call: ast.Call) -> bool:
        """Whether an iterator was made outside of the function that asks it for its next item."""
        if isinstance(node, ast.Name):
            scope = self._source.lookup(self._source.scopes[node], node.id)
            if scope is None or any(b.kind == "parameter" for b in scope.bindings[node.id]):
                return False
            return scope.kind == "module" or scope.function is not self._source.scopes[call].function
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._module.definitions.class_behind(node.value) is not None
        return False

    def _is_generator(self, node: ast.expr, call: ast.Call) -> bool:
        """Whether an object is a generator of random numbers that was made outside of the traced function, or without
        a seed."""
        values: list[ast.expr | None]
        if isinstance(node, ast.Name):
            scope = self._source.lookup(self._source.scopes[node], node.id)
            if scope is None:
                return False
            outside = scope.kind == "module" or scope.function is not self._source.scopes[call].function
            values = [binding.value for binding in self._source.reaching(node)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._module.definitions.class_behind(node.value)
            if owner is None:
                return False
            outside = True
            values = [
                statement.value
                for store in self._source.attributes.get(node.attr, ())
                if isinstance(store.ctx, ast.Store)
                and isinstance(statement := self._source.parents[store], (ast.Assign, ast.AnnAssign))
                and self._module.definitions.class_behind(store.value) is owner
            ]
        elif isinstance(node, ast.Call):
            outside, values = False, [node]
        else:
            return False
        return bool(values) and all(
            isinstance(value, ast.Call)
            and bool(self._module.names.dotted(value.func) & _GENERATORS)
            and (outside or not (value.args or value.keywords))
            for value in values
        )
