"""Adds up the payloads of all tests, of all workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jitcache.suite.session import STAGES, Function, Payload, function_from
from pytest_jitcache.varying import Parts, varying


@dataclass(kw_only=True)
class Cost:
    """Seconds by stage, and XLA compiles. Seconds are a function's own: without those of the traces inside its traces."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    compiles: int = 0

    @property
    def cost(self) -> float:
        return sum(self.seconds.values())


@dataclass
class FunctionTotals(Cost):
    """One function over the whole run."""

    function: Function
    traces: int = 0
    inlined: int = 0
    wasted: int = 0
    wasted_seconds: float = 0.0
    signatures: set[str] = field(default_factory=set)
    parts: dict[str, Parts] = field(default_factory=dict)  # of each signature
    tests: dict[str, int] = field(default_factory=dict)
    causes: dict[tuple[str, str | None], int] = field(default_factory=dict)
    fixes: dict[tuple[str, str | None], str] = field(default_factory=dict)

    @property
    def varies(self) -> str:
        """What differs between its signatures, in one line."""
        return varying([*self.parts.values()])


@dataclass
class Operation(Cost):
    """One of JAX's own operations (`add`, `_uniform`, ...), called outside of the user's jitted functions."""

    name: str


@dataclass
class Totals:
    """The whole run.

    Attributes:
        payloads: what was added, in the order of arrival.
        wall: seconds that the processes which ran tests took, added up.
        busy: those of them in which JAX was tracing, lowering or compiling on any thread.
    """

    payloads: list[Payload] = field(default_factory=list)
    functions: dict[Function, FunctionTotals] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    wall: float = 0.0
    busy: float = 0.0
    workers: int = 0

    def add(self, payload: Payload, worker: str = "") -> None:
        payload["worker"] = worker
        self.payloads.append(payload)
        self.busy += payload["busy"]
        functions = [function_from(row) for row in payload["functions"]]
        for name, (*seconds, compiles) in payload["others"].items():
            operation = self.operations.setdefault(name, Operation(name))
            for stage, spent in zip(STAGES, seconds, strict=True):
                operation.seconds[stage] += spent
            operation.compiles += compiles
        for record in payload["records"]:
            function = functions[record["function"]]
            total = self.functions.setdefault(function, FunctionTotals(function))
            _add(total, record, payload["test"])

    @property
    def _costs(self) -> list[Cost]:
        return [*self.functions.values(), *self.operations.values()]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage, of the user's functions and of JAX's own operations."""
        return {stage: sum(one.seconds[stage] for one in self._costs) for stage in STAGES}

    @property
    def compiles(self) -> int:
        return sum(one.compiles for one in self._costs)

    @property
    def traces(self) -> int:
        return sum(f.traces for f in self.functions.values())

    @property
    def empty(self) -> bool:
        return not self.functions and not self.operations

    @property
    def problems(self) -> dict[str, list[str]]:
        """Test -> what could not be seen in it."""
        return {p["test"]: p["problems"] for p in self.payloads if p["problems"]}

    @property
    def stale(self) -> list[tuple[str, dict[str, Any]]]:
        """The functions that keep a stale value, each with the test in which it went stale."""
        return [(p["test"], one) for p in self.payloads for one in p.get("stale", ())]

    def worst(self) -> list[FunctionTotals]:
        """The functions by cost, the dearest first; by name where they cost the same."""
        return sorted(self.functions.values(), key=lambda f: (-f.cost, f.function))

    def worst_operations(self) -> list[Operation]:
        """JAX's own operations by cost, the dearest first."""
        return sorted(self.operations.values(), key=lambda o: (-o.cost, o.name))


def _add(total: FunctionTotals, record: dict[str, Any], test: str) -> None:
    spent = sum(record["seconds"].values())
    for stage in STAGES:
        total.seconds[stage] += record["seconds"][stage]
    total.compiles += record["compiles"]
    total.tests.setdefault(test, 0)
    if not record["traced"]:
        return
    total.traces += 1
    total.tests[test] += 1
    total.inlined += record["inside"] is not None
    total.signatures.add(record["key"])
    if "parts" in record:
        total.parts.setdefault(record["key"], record.pop("parts"))
    if record["wasted"]:
        total.wasted += 1
        total.wasted_seconds += spent
        cause = (record["cause"], record["rule"])
        total.causes[cause] = total.causes.get(cause, 0) + 1
        total.fixes.setdefault(cause, record.get("fix") or "")
