"""`fix` mends what flake8 shows: the same findings, with the same configuration and the file's own name."""

from __future__ import annotations

import shlex
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from run_lint_cases import Case, Findings, read_cases, run_flake8
from test_command import run

from flake8_jitcache.codes import FIXABLE
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.flake8_settings import Flake8Settings
from flake8_jitcache.fix.source_file import SourceFile

CASES = [
    case
    for case in read_cases(Path(__file__).parent.parent / "cases" / "lint")
    if sys.version_info >= (3, 12) or not case.needs_python_312
]


def found_by_fix(case: Case, path: Path) -> Findings:
    settings = Flake8Settings(["--isolated", *shlex.split(case.options)])
    text = SourceFile.decode(path.read_bytes()).text
    return Counter(
        (finding.line, finding.code)
        for finding in Document(text, settings.options, str(path)).findings
        if finding.code in FIXABLE
        and settings.selects(finding.code, str(path))
        and not settings.is_silenced(str(path), text, finding)
    )


@pytest.mark.parametrize("name", ["{}.py", "test_{}.py"], ids=["own name", "name of a test module"])
def test_fix_finds_what_flake8_finds(name: str, tmp_path: Path) -> None:
    groups: dict[str, dict[Path, Case]] = defaultdict(dict)
    for case in CASES:
        path = tmp_path / name.format(case.path.stem)
        path.write_bytes(case.path.read_bytes())
        groups[case.options][path] = case
    total = 0
    for options, cases in groups.items():
        shown = run_flake8(sys.executable, options, cases)
        for path, case in cases.items():
            expected = Counter({key: n for key, n in shown.get(path, Counter()).items() if key[1] in FIXABLE})
            assert found_by_fix(case, path) == expected, path.name
            total += expected.total()
    assert total > (0 if name.startswith("test_") else 20)  # test modules are judged by their loops alone


HELPER = """\
import jax


def norm(x):
    return jax.jit(lambda v: v * 2)(x)


def check(x):
    return norm(x) == 4.0
"""


def test_helper_of_a_test_module_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_norm.py").write_text(HELPER)
    assert run(tmp_path, "--isolated", "test_norm.py") == (0, "", "")
    (tmp_path / "norm.py").write_text(HELPER)
    assert run(tmp_path, "--isolated", "norm.py")[0] == 1


def test_standard_input_goes_under_its_name(tmp_path: Path) -> None:
    data = HELPER.encode()
    named = run(tmp_path, "--isolated", "--stdin-display-name=tests/test_norm.py", "-", data=data)
    assert named == (0, HELPER, "")
    assert run(tmp_path, "--isolated", "--stdin-display-name=norm.py", "-", data=data)[1] != HELPER
