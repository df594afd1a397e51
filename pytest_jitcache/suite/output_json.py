"""`--jitcache-json`: the whole run for a machine, written and read. The schema is described in README.md of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_jitcache.suite.session import STAGES, Function, function_from
from pytest_jitcache.suite.totals import FunctionTotals, Totals

VERSION = 1


def render(totals: Totals) -> str:
    """The text of the file."""
    return text(document(totals))


def text(found: dict[str, Any]) -> str:
    """A document as the text of its file."""
    return json.dumps(found, indent=1, sort_keys=False) + "\n"


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
        "column": f.column,
        "kinds": list(f.kinds),
        "traces": total.traces,
        "inlined": total.inlined,
        "signatures": len(total.signatures),
        "varies": total.varies or None,
        "compiles": total.compiles,
        "seconds": total.seconds,
        "wasted_traces": total.wasted,
        "wasted_seconds": total.wasted_seconds,
        "causes": [
            {"cause": cause, "rule": rule, "traces": n, "fix": total.fixes.get((cause, rule), "")}
            for (cause, rule), n in total.causes.items()
        ],
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
                "busy_seconds": payload["busy"],
                **({"spans": payload["spans"], "phases": payload["phases"]} if payload["spans"] else {}),
            }
        )
    return tests


class NoReport(ValueError):
    """A file is no report of a run; the message is one line for the user."""


def read(path: Path) -> dict[str, Any]:
    """The document of a file that `render` wrote.

    Raises:
        NoReport: it can't be read, is no report, or one of a newer version.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoReport(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise NoReport(f"{path} is no report: it is not JSON") from None
    if not isinstance(found, dict) or found.get("schema") != "jitcache-run":
        raise NoReport(f'{path} is no report: it has no "schema": "jitcache-run"')
    if not isinstance(found.get("version"), int) or found["version"] > VERSION:
        raise NoReport(f"{path} has version {found.get('version')!r}; this jax-jitcache reads up to {VERSION}")
    return found


def totals_of(document: dict[str, Any], worker: str = "") -> Totals:
    """The totals that a document was written from.

    Args:
        worker: the name of the process, where documents of several are added up.

    Raises:
        NoReport: a part of it is missing or of another type.
    """
    totals = Totals()
    try:
        functions = [
            [f["name"], f["qualname"], f["module"], f["file"], f["line"], f.get("column", 0), f["kinds"]]
            for f in document["functions"]
        ]
        totals.wall = document["totals"]["wall_seconds"]
        totals.workers = document["totals"]["workers"]
        stale: dict[str, list[dict[str, Any]]] = {}
        for one in document.get("stale_values", ()):
            stale.setdefault(one["test"] or "", []).append({k: v for k, v in one.items() if k != "test"})
        for test in document["tests"]:
            numbers: dict[int, int] = {}
            records = []
            for record in test["records"]:
                row = {**record, "function": numbers.setdefault(record["function"], len(numbers))}
                for name in ("call_site", "test_site"):
                    if row.get(name):
                        row[name] = [row[name][part] for part in ("file", "line", "function")]
                records.append(row)
            operations = {
                one["name"]: [*(one["seconds"][stage] for stage in STAGES), one["compiles"]]
                for one in test["jax_operations"]
            }
            name = test["test"] or ""
            totals.add(
                {
                    "test": name,
                    "attempt": test["attempt"],
                    "functions": [functions[number] for number in numbers],
                    "records": records,
                    "others": operations,
                    "problems": test["problems"],
                    "busy": test.get("busy_seconds", 0.0),
                    "spans": test.get("spans", []),
                    "phases": test.get("phases", []),
                    **{key: test[key] for key in ("outcome", "retraced", "allowed") if key in test},
                    **({"stale": stale.pop(name)} if name in stale else {}),
                },
                test["worker"] or worker,
            )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise NoReport(f"a part of the report is missing or of another form: {type(error).__name__}: {error}") from None
    return totals
