"""`--jitcache-timeline`: the run in the Trace Event Format, which Perfetto and chrome://tracing open.

One process for each worker, one track for each thread, and one more for the phases of the tests. Times are in
microseconds since the first event.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_jitcache.suite.totals import Totals

_TESTS = 1  # the thread id of the track of the tests


def render(totals: Totals) -> str:
    """The text of the file."""
    return json.dumps({"traceEvents": events(totals), "displayTimeUnit": "ms"}) + "\n"


def events(totals: Totals) -> list[dict[str, Any]]:
    """Complete events (`ph: X`) for tests and spans, and metadata (`ph: M`) that names the tracks."""
    starts = [span[2] for p in totals.payloads for span in p["spans"]]
    starts += [phase[1] for p in totals.payloads for phase in p["phases"]]
    zero = min(starts, default=0.0)
    found: list[dict[str, Any]] = []
    processes: dict[str, int] = {}
    threads: dict[tuple[int, int, str], int] = {}

    def at(seconds: float) -> float:
        return round((seconds - zero) * 1e6, 1)

    for payload in totals.payloads:
        worker = payload["worker"]
        if worker not in processes:
            processes[worker] = len(processes) + 1
            name = f"pytest {worker}" if worker else "pytest"
            found.append(_name("process_name", processes[worker], 0, name))
            found.append(_name("thread_name", processes[worker], _TESTS, "tests"))
        pid, test = processes[worker], payload["test"]
        for phase, start, end in payload["phases"]:
            if end > start:
                found.append(
                    {"ph": "X", "cat": "test", "name": f"{test} ({phase})", "pid": pid, "tid": _TESTS,
                     "ts": at(start), "dur": round((end - start) * 1e6, 1), "args": {"test": test, "phase": phase}}
                )  # fmt: skip
        for stage, function, start, seconds, ident, thread, signature, phase, *_ in payload["spans"]:
            track = (pid, ident, thread)  # an ident is used again once its thread is gone, a name at any time
            if track not in threads:
                threads[track] = _TESTS + 1 + sum(known == pid for known, *_ in threads)
                found.append(_name("thread_name", pid, threads[track], thread))
            details = {
                "test": test,
                "phase": phase,
                "thread": thread,
                **({"signature": signature} if signature else {}),
            }
            found.append(
                {"ph": "X", "cat": stage, "name": f"{stage} {function}", "pid": pid, "tid": threads[track],
                 "ts": at(start), "dur": round(seconds * 1e6, 1), "args": details}
            )  # fmt: skip
    return found


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}
