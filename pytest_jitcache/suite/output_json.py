"""`--jitcache-json`: the whole run for a machine. The schema is described in README.md of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_jitcache.suite.session import STAGES, Function, function_from
from pytest_jitcache.suite.totals import FunctionTotals, Totals

VERSION = 1


def render(totals: Totals) -> str:
    """The text of the file."""
    return json.dumps(document(totals), indent=1, sort_keys=False) + "\n"


def document(totals: Totals) -> dict[str, Any]:
    """The run as JSON types, schema version `VERSION`."""
    ordered = totals.worst()
    number = {total.function: index for index, total in enumerate(ordered)}
    return {
        "schema": "jitcache-run",
        "version": VERSION,
        "totals": {
            "wall_seconds": totals.wall,
            "busy_seconds": totals.busy,
            "seconds": totals.seconds,
            "traces": totals.traces,
            "compiles": totals.compiles,
            "wasted_traces": sum(f.wasted for f in ordered),
            "wasted_seconds": sum(f.wasted_seconds for f in ordered),
            "workers": totals.workers,
        },
        "jax_operations": [
            {"name": one.name, "seconds": one.seconds, "compiles": one.compiles} for one in totals.worst_operations()
        ],
        "functions": [_function(total) for total in ordered],
        "stale_values": [{"test": test or None, **one} for test, one in totals.stale],
        "tests": _tests(totals, number.__getitem__),
    }


def _function(total: FunctionTotals) -> dict[str, Any]:
    f = total.function
    return {
        "name": f.name,
        "qualname": f.qualname,
        "module": f.module,
        "file": f.filename,
        "line": f.line,
        "kinds": list(f.kinds),
        "traces": total.traces,
        "inlined": total.inlined,
        "signatures": len(total.signatures),
        "varies": total.varies or None,
        "compiles": total.compiles,
        "seconds": total.seconds,
        "wasted_traces": total.wasted,
        "wasted_seconds": total.wasted_seconds,
        "causes": [{"cause": cause, "rule": rule, "traces": n} for (cause, rule), n in total.causes.items()],
        "tests": total.tests,
    }


def _tests(totals: Totals, number: Callable[[Function], int]) -> list[dict[str, Any]]:
    tests = []
    for payload in totals.payloads:
        functions = [number(function_from(row)) for row in payload["functions"]]
        records = []
        for record in payload["records"]:
            row = {**record, "function": functions[record["function"]]}
            for name in ("call_site", "test_site"):
                if row.get(name):
                    row[name] = dict(zip(("file", "line", "function"), row[name], strict=True))
            records.append(row)
        tests.append(
            {
                "test": payload["test"] or None,
                "attempt": payload["attempt"],
                "worker": payload["worker"] or None,
                "outcome": payload.get("outcome"),
                "retraced": payload.get("retraced", []),
                "allowed": payload.get("allowed"),
                "records": records,
                "jax_operations": [
                    {"name": name, "seconds": dict(zip(STAGES, seconds, strict=True)), "compiles": compiles}
                    for name, (*seconds, compiles) in payload["others"].items()
                ],
                "problems": payload["problems"],
            }
        )
    return tests
