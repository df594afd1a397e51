"""`--output-format`: edits and what is left, for editors and CI, each read back by what it is written for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_command import FAULTY, FIXED, REASON, REFUSED, run

PLACES = "--format=%(row)d %(col)d %(code)s"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "refused.py").write_text(REFUSED)
    (tmp_path / "broken.py").write_text("import jax\njax.jit(\n")
    return tmp_path


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    lines = text.splitlines(keepends=True)
    for edit in reversed(edits):
        lines[edit["start_line"] - 1 : edit["end_line"] - 1] = [edit["text"]]
    return "".join(lines)


def shown_by_flake8(folder: Path, name: str) -> list[str]:
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=JIT", PLACES, name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.splitlines()


def test_json_has_edits_that_apply_and_places_as_flake8_counts_them(folder: Path) -> None:
    status, out, err = run(folder, "--isolated", "--output-format=json", "faulty.py", "refused.py")
    assert status == 1
    assert "1 can be fixed, 1 left" in err
    faulty, refused = json.loads(out)["files"]
    assert applied(FAULTY, faulty["edits"]) == FIXED
    assert [f"{it['line']} {it['column']} {it['code']}" for it in faulty["fixed"]] == shown_by_flake8(
        folder, "faulty.py"
    )
    assert refused["edits"] == refused["fixed"] == []
    [left] = refused["left"]
    assert left["reason"] == REASON
    assert [f"{left['line']} {left['column']} {left['code']}"] == shown_by_flake8(folder, "refused.py")
    assert (folder / "faulty.py").read_text() == FAULTY


def test_json_names_errors_and_the_status_is_2(folder: Path) -> None:
    status, out, _ = run(folder, "--isolated", "--output-format=json", "broken.py")
    assert status == 2
    [error] = json.loads(out)["errors"]
    assert error["path"] == "broken.py"
    assert error["reason"].startswith("Python can't parse it")


def test_github_has_a_line_for_each_finding(folder: Path) -> None:
    status, out, _ = run(folder, "--isolated", "--output-format=github", "faulty.py", "refused.py")
    assert status == 1
    assert out.splitlines() == [
        "::notice file=faulty.py,line=5,col=12,title=JIT101::can be fixed: python -m flake8_jitcache fix --write",
        f"::warning file=refused.py,line=4,col=12,title=JIT101::not fixed: {REASON}",
    ]


def test_sarif_has_rules_results_and_replacements_that_apply(folder: Path) -> None:
    status, out, _ = run(folder, "--isolated", "--output-format=sarif", "faulty.py", "refused.py")
    assert status == 1
    found = json.loads(out)
    [sarif] = found["runs"]
    assert found["version"] == "2.1.0"
    rules = {rule["id"] for rule in sarif["tool"]["driver"]["rules"]}
    first, second = sarif["results"]
    assert {first["ruleId"], second["ruleId"]} <= rules
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 5, "startColumn": 12}
    [change] = first["fixes"][0]["artifactChanges"]
    edits = [
        {
            "start_line": it["deletedRegion"]["startLine"],
            "end_line": it["deletedRegion"]["endLine"],
            "text": it["insertedContent"]["text"],
        }
        for it in change["replacements"]
    ]
    assert applied(FAULTY, edits) == FIXED
    assert "fixes" not in second


def test_standard_input_is_reported_under_its_name(folder: Path) -> None:
    arguments = ("--isolated", "--output-format=json", "--stdin-display-name=src/a.py", "-")
    status, out, _ = run(folder, *arguments, data=FAULTY.encode())
    assert status == 1
    [report] = json.loads(out)["files"]
    assert report["path"] == "src/a.py"
    assert applied(FAULTY, report["edits"]) == FIXED


def test_written_files_are_reported_too(folder: Path) -> None:
    status, out, _ = run(folder, "--isolated", "--write", "--output-format=json", "faulty.py")
    assert status == 0
    assert json.loads(out)["files"][0]["fixed"][0]["code"] == "JIT101"
    assert (folder / "faulty.py").read_text() == FIXED


def test_unknown_format_is_one_line(folder: Path) -> None:
    status, out, err = run(folder, "--output-format=xml", "faulty.py")
    assert (status, out) == (2, "")
    assert err == "error: --output-format: 'xml' is no format; allowed are text, json, github, sarif\n"
