"""Adds up the payloads of all tests, of all workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jitcache.suite.session import STAGES, Function, Payload, function_from


@dataclass
class FunctionTotals:
    """One function over the whole run. Seconds are its own: without those of the traces inside its traces."""

    function: Function
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    traces: int = 0
    inlined: int = 0
    compiles: int = 0
    wasted: int = 0
    wasted_seconds: float = 0.0
    signatures: set[str] = field(default_factory=set)
    tests: dict[str, int] = field(default_factory=dict)
    causes: dict[tuple[str, str | None], int] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        return sum(self.seconds.values())


@dataclass
class Totals:
    """The whole run.

    Attributes:
        payloads: what was added, in the order of arrival.
        wall: seconds that the processes which ran tests took, added up.
    """

    payloads: list[Payload] = field(default_factory=list)
    functions: dict[Function, FunctionTotals] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    other_compiles: int = 0
    wall: float = 0.0
    workers: int = 0

    def add(self, payload: Payload, worker: str = "") -> None:
        payload["worker"] = worker
        self.payloads.append(payload)
        functions = [function_from(row) for row in payload["functions"]]
        for stage in STAGES:
            self.others[stage] += payload["others"][stage]
        self.other_compiles += payload["other_compiles"]
        for record in payload["records"]:
            function = functions[record["function"]]
            total = self.functions.setdefault(function, FunctionTotals(function))
            _add(total, record, payload["test"])

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage, of the user's functions and of JAX's own operations."""
        return {stage: self.others[stage] + sum(f.seconds[stage] for f in self.functions.values()) for stage in STAGES}

    @property
    def compiles(self) -> int:
        return self.other_compiles + sum(f.compiles for f in self.functions.values())

    @property
    def traces(self) -> int:
        return sum(f.traces for f in self.functions.values())

    @property
    def empty(self) -> bool:
        return not self.functions and not any(self.others.values())

    @property
    def problems(self) -> dict[str, list[str]]:
        """Test -> what could not be seen in it."""
        return {p["test"]: p["problems"] for p in self.payloads if p["problems"]}

    def worst(self) -> list[FunctionTotals]:
        """The functions by cost, the dearest first; by name where they cost the same."""
        return sorted(self.functions.values(), key=lambda f: (-f.cost, f.function))


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
    if record["wasted"]:
        total.wasted += 1
        total.wasted_seconds += spent
        cause = (record["cause"], record["rule"])
        total.causes[cause] = total.causes.get(cause, 0) + 1
