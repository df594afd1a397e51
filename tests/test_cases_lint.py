"""Each file of tests/cases/lint gets, from a real flake8 process, exactly the findings that its comments expect."""

import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from run_lint_cases import Case, Findings, difference, read_case, read_cases, run_flake8

CASES = read_cases(Path(__file__).parent / "cases" / "lint")

KNOWN_MISSES: dict[str, str] = {}
"""File name -> why the linter does not judge it rightly yet. A case that begins to hold has to leave this list."""


def as_parameter(case: Case) -> object:
    marks = []
    if case.needs_python_312:
        marks.append(pytest.mark.skipif(sys.version_info < (3, 12), reason="needs the syntax of Python 3.12"))
    if case.path.name in KNOWN_MISSES:
        marks.append(pytest.mark.xfail(strict=True, reason=KNOWN_MISSES[case.path.name]))
    return pytest.param(case, id=case.path.stem, marks=marks)


@pytest.fixture(scope="session")
def findings() -> dict[Path, Findings]:
    """The findings in all cases: one flake8 process for each set of options."""
    groups: dict[str, list[Path]] = defaultdict(list)
    for case in CASES:
        if sys.version_info >= (3, 12) or not case.needs_python_312:
            groups[case.options].append(case.path)
    found: dict[Path, Findings] = {}
    for options, paths in groups.items():
        found.update(run_flake8(sys.executable, options, paths))
    return found


@pytest.mark.parametrize("case", [as_parameter(case) for case in CASES])
def test_case(case: Case, findings: dict[Path, Findings]) -> None:
    assert difference(case.expected, findings.get(case.path, Counter())) == ""


def test_cases_ask_for_findings_and_for_silence() -> None:
    assert any(case.expected for case in CASES)
    assert any(not case.expected for case in CASES)


def test_known_misses_name_cases() -> None:
    assert KNOWN_MISSES.keys() <= {case.path.name for case in CASES}


def test_reader_sees_what_a_case_expects(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text("# case: two\n# options: --max-line-length=99\nx = 1  # expect: JIT101 JIT107\ny = 2\n")
    assert read_case(path) == Case(path, "--max-line-length=99", Counter([(3, "JIT101"), (3, "JIT107")]))


def test_difference_names_what_is_missed_and_what_is_false() -> None:
    expected, found = Counter([(3, "JIT101"), (9, "JIT107")]), Counter([(3, "JIT101"), (4, "JIT103")])
    assert difference(expected, found) == "missed JIT107 at 9; false JIT103 at 4"
