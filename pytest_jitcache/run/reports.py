"""`jitcache report` and `jitcache diff`: what a run has written, read again, added up and compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_jitcache.places import show
from pytest_jitcache.run.screen import Screen
from pytest_jitcache.suite import files, output_json, summary
from pytest_jitcache.suite.output_json import NoReport
from pytest_jitcache.suite.totals import Totals

_SLOWER = 1.2  # from which ratio on seconds are worth a word


def report(arguments: Sequence[str]) -> int:
    """Print the summary of one or more files, and write them as one report. Returns the exit status: 2 for a bad file."""
    parser = argparse.ArgumentParser(prog="jitcache report", description="The summary of what a run has written.")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="of `jitcache run --json` or pytest's --jitcache-json"
    )
    parser.add_argument("--html", type=Path, metavar="OUT", help="write a report to look at")
    options = parser.parse_args(arguments)
    try:
        if options.html is not None:
            files.check(options.html)
        document, totals = merged(options.files)
        summary.show(Screen(sys.stdout), totals, summary.FUNCTIONS)
        if options.html is not None:
            from pytest_jitcache import html

            files.write(options.html, html.render(document))
    except (NoReport, OSError) as error:
        print(f"jitcache: {error}", file=sys.stderr)
        return 2
    return 0


def merged(paths: Sequence[Path]) -> tuple[dict[str, Any], Totals]:
    """Several reports as one; each file is a process of its own.

    Raises:
        NoReport: a file is no report.
    """
    documents = [output_json.read(path) for path in paths]
    if len(documents) == 1:
        return documents[0], output_json.totals_of(documents[0])
    totals = Totals()
    for path, document in zip(paths, documents, strict=True):
        one = output_json.totals_of(document, worker=path.stem)
        for payload in one.payloads:
            totals.add(payload, payload["worker"])
        totals.wall += one.wall
    totals.workers = len(documents)
    return output_json.document(totals), totals


def diff(arguments: Sequence[str]) -> int:
    """Compare two runs. Returns the exit status: 1 where more is traced or compiled than before, 2 for a bad file."""
    parser = argparse.ArgumentParser(
        prog="jitcache diff",
        description="What is traced or compiled more than before. Counts decide; seconds are shown.",
    )
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    options = parser.parse_args(arguments)
    try:
        old, new = (_counts(output_json.read(path)) for path in (options.old, options.new))
    except NoReport as error:
        print(f"jitcache: {error}", file=sys.stderr)
        return 2
    more = False
    for name in sorted({*old, *new}, key=lambda name: -new.get(name, _NOTHING)["seconds"]):
        before, now = old.get(name, _NOTHING), new.get(name, _NOTHING)
        changes = []
        for count in ("traces", "compiles", "wasted traces"):
            if now[count] != before[count]:
                changes.append(f"{count} {before[count]:.0f} -> {now[count]:.0f}")
                more = more or now[count] > before[count]
        slower = now["seconds"] > _SLOWER * before["seconds"] and now["seconds"] - before["seconds"] > 0.05
        if changes or slower:
            changes.append(f"{before['seconds']:.2f} s -> {now['seconds']:.2f} s")
            print(f"{name}: {', '.join(changes)}")
    if not more:
        print("nothing is traced or compiled more often than before")
    return int(more)


_NOTHING = {"traces": 0, "compiles": 0, "wasted traces": 0, "seconds": 0.0}


def _counts(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What counts of each function; by its place in the file's functions and not by its line, which any edit moves."""
    found: dict[str, dict[str, float]] = {}
    for one in document["functions"]:
        name = f"{one['qualname'].replace('.<locals>', '')} in {show(one['file'])}"
        row = found.setdefault(name, dict(_NOTHING))
        row["traces"] += one["traces"]
        row["compiles"] += one["compiles"]
        row["wasted traces"] += one["wasted_traces"]
        row["seconds"] += sum(one["seconds"].values())
    for one in document["jax_operations"]:
        row = found.setdefault(f"JAX's own {one['name']}", dict(_NOTHING))
        row["compiles"] += one["compiles"]
        row["seconds"] += sum(one["seconds"].values())
    return found
