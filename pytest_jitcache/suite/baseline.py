"""The file of accepted retraces: which functions are traced again in which tests.

An entry has no line number and no count, so that it survives edits and random inputs; a function is named by the file
it is in, relative to the root folder, and its qualified name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from pytest_jitcache.suite import files
from pytest_jitcache.suite.session import Function

VERSION = 1

Entries = dict[str, set[str]]
"""Test -> the functions in it, as `name` gives them."""


def name(function: Function, root: Path) -> str:
    """A function as the file names it: `tests/test_a.py::test_it.<lambda>`."""
    path = Path(function.filename)
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f"{shown}::{function.qualname.replace('.<locals>', '')}"


def load(path: Path) -> Entries:
    """Read a baseline.

    Raises:
        pytest.UsageError: it is none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise ValueError(f"it has version {document['version']!r}, this plugin knows version {VERSION}")
        return {str(test): {str(one) for one in functions} for test, functions in document["retraces"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise pytest.UsageError(
            f"the baseline {path} cannot be used: {what}. --jitcache-update-baseline writes a new one, once it is gone."
        ) from None


def save(path: Path, entries: Mapping[str, Iterable[str]]) -> None:
    """Write a baseline."""
    retraces = {test: sorted(functions) for test, functions in sorted(entries.items()) if functions}
    text = json.dumps({"schema": "jitcache-baseline", "version": VERSION, "retraces": retraces}, indent=1)
    files.write(path, text + "\n")


def updated(old: Entries, seen: Entries, ran: Iterable[str]) -> Entries:
    """What to write: what this run has seen, and the old entries of the tests that it did not run."""
    done = set(ran)
    return {**{test: functions for test, functions in old.items() if test not in done}, **seen}


def stale(old: Entries, seen: Entries, ran: Iterable[str]) -> list[str]:
    """The entries that were not needed: their test ran, and the function was not traced again in it."""
    done = set(ran)
    return [
        f"{test}: {function}"
        for test, functions in old.items()
        if test in done
        for function in sorted(functions - seen.get(test, set()))
    ]
