"""Each finding sits on the line on which flake8 honours a `# noqa` for it, in each spelling that flake8 knows."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections import defaultdict
from pathlib import Path

import pytest
import test_fates
import test_frequency
import test_lifetimes
import test_names
import test_scopes
import test_targets
from flake8.processor import FileProcessor
from flake8.violation import Violation
from run_lint_cases import marked, read_cases, read_text
from sources import all_findings

CASES = Path(__file__).resolve().parent.parent / "cases" / "lint"

# Of the codes that a line gets, as `JIT101,JIT103`.
SPELLINGS = {
    "all": "# noqa",
    "all, upper case": "# NOQA",
    "all, with a reason": "# noqa made anew on purpose",
    "codes": "# noqa: {codes}",
    "codes, without a space": "# noqa:{codes}",
    "codes, between others": "# noqa: E501,{codes},W291",
    "codes, separated by spaces": "# noqa: {spaced}",
    "family": "# noqa: JIT",
    "family and digit": "# noqa: JIT1,JIT2,JIT3,JIT4,JIT5",
    "after another comment": "# type: ignore # noqa: {codes}",
}

# The options that flake8's processor reads; their values play no part here.
READ_BY_PROCESSOR = ("hang_closing", "indent_size", "max_doc_length", "max_line_length", "verbose")


def fixtures() -> dict[str, dict[str, str]]:
    """The sources that expect something, by the options that they need."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for case in read_cases(CASES):
        if case.expected and not case.needs_python_312:
            found[case.options][case.path.stem] = read_text(case.path)
    items = [
        *test_fates.DROPPED, *test_targets.FRESH, *test_targets.STABLE, *test_lifetimes.FACTORIES, *test_lifetimes.PLACES,
        *test_scopes.SCOPES, *test_names.NAMES, *test_frequency.OFTEN,
    ]  # fmt: skip
    for number, item in enumerate(items):
        if marked(item.text):
            found[""][f"inline_{number}"] = item.text
    return found


FIXTURES = fixtures()


def silenced(text: str, spelling: str) -> str:
    lines = text.split("\n")
    for number in {number for number, _ in marked(text)}:
        code, _, codes = lines[number - 1].rpartition("# expect:")
        lines[number - 1] = code + spelling.format(codes=",".join(codes.split()), spaced=" ".join(codes.split()))
    return "\n".join(lines)


def findings(folder: Path, options: str) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "flake8",
        "--isolated",
        "-j2",
        *options.split(),
        "--format=%(path)s %(row)d %(code)s",
        ".",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if " JIT" in line]


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_flake8_honours_each_spelling_for_each_finding(spelling: str) -> None:
    # flake8's own reading of the lines, without a process for each of thousands of files
    ignored = 0
    for texts in FIXTURES.values():
        for name, text in texts.items():
            lines = silenced(text, spelling).splitlines(keepends=True)
            processor = FileProcessor(f"{name}.py", Namespace(**dict.fromkeys(READ_BY_PROCESSOR, 79)), lines)
            expected = {number for number, _ in marked(text)}
            for finding in all_findings("".join(lines)):
                if finding.line in expected:
                    line = processor.noqa_line_for(finding.line)
                    violation = Violation(finding.code, name, finding.line, finding.column, finding.text, line)
                    assert violation.is_inline_ignored(disable_noqa=False), (name, finding)
                    ignored += 1
    assert ignored > 300


@pytest.mark.parametrize("options", FIXTURES, ids=lambda options: options or "no options")
def test_a_process_is_silent(options: str, tmp_path: Path) -> None:
    spellings = list(SPELLINGS.values())
    for place, (name, text) in enumerate(FIXTURES[options].items()):
        (tmp_path / f"{name}.py").write_text(silenced(text, spellings[place % len(spellings)]))
    assert findings(tmp_path, options) == []


@pytest.mark.parametrize("comment", ["# flake8: noqa", "# flake8: noqa: JIT101", "# FLAKE8: NOQA"])
def test_whole_file(comment: str, tmp_path: Path) -> None:
    text = FIXTURES[""]["lambda_called_at_once"]
    (tmp_path / "it.py").write_text(text + comment + "\n")
    assert findings(tmp_path, "") == []


def test_another_code_silences_nothing(tmp_path: Path) -> None:
    text = FIXTURES[""]["lambda_called_at_once"]
    (tmp_path / "it.py").write_text(silenced(text, "# noqa: JIT103,E501"))
    assert len(findings(tmp_path, "")) == 1
