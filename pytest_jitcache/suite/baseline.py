"""The file of accepted retraces: which functions are traced again in which tests.

An entry has no line number and no count, so that it survives edits and random inputs; a function is named by the file
it is in, relative to the root folder, and its qualified name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jitcache.suite import files
from pytest_jitcache.suite.session import Function

_HEAD = {"schema": "jitcache-baseline", "version": 1}
_FORM = json.dumps(_HEAD)[:-1] + ', "retraces": {TEST: [FUNCTION, ...]}}'

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
        wrong = _wrong(document)
    except OSError as error:
        wrong = f"it cannot be read ({error.strerror or error})"
    except json.JSONDecodeError as error:
        wrong = f"it is no JSON (line {error.lineno}, column {error.colno})"
    except UnicodeDecodeError:
        wrong = "it is no text in UTF-8"
    if wrong:
        raise pytest.UsageError(
            f"the baseline {path} cannot be used: {wrong}; expected is {_FORM}. "
            "--jitcache-update-baseline writes a new one, once it is gone."
        )
    return {test: set(functions) for test, functions in document["retraces"].items()}


def _wrong(document: Any) -> str:
    """What is wrong with the content of the file, or nothing."""
    if not isinstance(document, dict):
        return f"it holds {document!r:.40}"
    for key, expected in _HEAD.items():
        if (type(document.get(key)), document.get(key)) != (type(expected), expected):
            return f"its {key} is {document[key]!r:.40}" if key in document else f"it has no {key}"
    retraces = document.get("retraces")
    if not isinstance(retraces, dict):
        return f"its retraces are {retraces!r:.40}" if "retraces" in document else "it has no retraces"
    for test, functions in retraces.items():
        if not isinstance(functions, list) or not all(isinstance(one, str) for one in functions):
            return f"its retraces of {test} are {functions!r:.40}"
    return ""


def save(path: Path, entries: Mapping[str, Iterable[str]]) -> None:
    """Write a baseline."""
    retraces = {test: sorted(functions) for test, functions in sorted(entries.items()) if functions}
    text = json.dumps({**_HEAD, "retraces": retraces}, indent=1)
    files.write(path, text + "\n")


def updated(old: Entries, seen: Entries, ran: Iterable[str]) -> Entries:
    """What to write: what this run has seen, and the old entries of the tests that it did not run (or find gone)."""
    done = set(ran)
    return {**{test: functions for test, functions in old.items() if test not in done}, **seen}


def gone(old: Entries, collected: Collection[str], root: Path) -> set[str]:
    """The tests that are no more, after a collection that was not narrowed within files.

    Args:
        old: the entries of the baseline.
        collected: the node ids of all files and tests that were collected.
        root: the root folder.
    """
    files = {test: test.partition("::")[0] for test in old if test not in collected}
    return {test for test, file in files.items() if file in collected or not (root / file).exists()}


def stale(old: Entries, seen: Entries, ran: Iterable[str]) -> list[str]:
    """The entries that were not needed: their test ran (or is gone), and the function was not traced again in it."""
    done = set(ran)
    return [
        f"{test}: {function}"
        for test, functions in old.items()
        if test in done
        for function in sorted(functions - seen.get(test, set()))
    ]
