"""What a run found, for editors and CI: as JSON, as annotations of GitHub, as SARIF 2.1.0.

Lines and columns count from 1, as flake8 counts them; those of edits are in the file as it was. The edits of one file go
together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from flake8_jitcache.codes import CODES, FIXABLE
from flake8_jitcache.fix.rounds import Left, Mended


@dataclass(frozen=True)
class TextEdit:
    """Lines to replace: from the beginning of `start_line` to that of `end_line`, which stays."""

    start_line: int
    end_line: int
    text: str


@dataclass
class FileReport:
    """One file: what is fixed and how, and what is left."""

    path: str
    edits: list[TextEdit] = field(default_factory=list)
    fixed: list[Mended] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def edits_between(before: str, after: str) -> list[TextEdit]:
    """The edits of whole lines that turn one text into another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return [
        TextEdit(i1 + 1, i2 + 1, "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def written(form: str, reports: Iterable[FileReport], errors: list[tuple[str, str]]) -> str:
    """The reports in one of the formats."""
    found = list(reports)
    if form == "json":
        files = [asdict(report) for report in found]
        return _json({"files": files, "errors": [{"path": path, "reason": reason} for path, reason in errors]})
    return _json(_sarif(found, errors)) if form == "sarif" else _github(found, errors)


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _github(reports: list[FileReport], errors: list[tuple[str, str]]) -> str:
    lines = [f"::error file={_property(path)}::{_data(reason)}" for path, reason in errors]
    for report in reports:
        rows: list[tuple[str, Mended | Left, str]] = [
            ("notice", it, "can be fixed: python -m flake8_jitcache fix --write") for it in report.fixed
        ]
        rows += [("warning", it, f"not fixed: {it.reason}") for it in report.left]
        for kind, it, text in rows:
            where = f"file={_property(report.path)},line={it.line},col={it.column},title={it.code}"
            lines.append(f"::{kind} {where}::{_data(text)}")
    return "".join(f"{line}\n" for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(reports: list[FileReport], errors: list[tuple[str, str]]) -> dict[str, Any]:
    rules = [
        {"id": code, "name": CODES[code].name, "shortDescription": {"text": CODES[code].summary}} for code in FIXABLE
    ]
    driver = {"name": "jax-jitcache", "version": version("jax-jitcache"), "rules": rules}
    notes = [{"level": "error", "message": {"text": f"{path}: {reason}"}} for path, reason in errors]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not errors, "toolExecutionNotifications": notes}],
        "results": [result for report in reports for result in _results(report)],
    }
    return {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}


def _results(report: FileReport) -> list[dict[str, Any]]:
    artifact = {"uri": PurePath(report.path).as_posix()}
    found = [_result(artifact, it, "can be fixed") for it in report.fixed]
    if found:  # the edits of a file go together: with its first result
        replacements = [
            {
                "deletedRegion": {
                    "startLine": edit.start_line,
                    "startColumn": 1,
                    "endLine": edit.end_line,
                    "endColumn": 1,
                },
                "insertedContent": {"text": edit.text},
            }
            for edit in report.edits
        ]
        changes = [{"artifactLocation": artifact, "replacements": replacements}]
        found[0]["fixes"] = [{"description": {"text": "make what is jitted once"}, "artifactChanges": changes}]
    return found + [_result(artifact, it, f"not fixed: {it.reason}") for it in report.left]


def _result(artifact: dict[str, str], it: Mended | Left, text: str) -> dict[str, Any]:
    region = {"startLine": it.line, "startColumn": it.column}
    location = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    return {"ruleId": it.code, "level": "warning", "message": {"text": text}, "locations": [location]}
