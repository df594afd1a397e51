"""Each module of tests/cases/trace, in a pytest process of its own, ends as its header says."""

import argparse
import sys
from pathlib import Path

import jax
import pytest
from run_trace_cases import judge, read_header, run_case

CASES = sorted((Path(__file__).parent / "cases" / "trace").glob("test_*.py"))

KNOWN_MISSES: dict[str, str] = {}
"""File name -> why the fixture does not judge it rightly yet. A case that begins to hold has to leave this list."""

JAX_0_4 = jax.__version_info__ < (0, 5)

OLD_JAX: dict[str, tuple[bool, str]] = {
    "test_named_sharding.py": (JAX_0_4, "JAX 0.4 compiles again for another sharding, and does not trace again"),
    "test_never_jitted.py": (JAX_0_4, "JAX 0.4 does not tell of functions inlined in a trace: a warning instead"),
    "test_x64_context.py": (not hasattr(jax, "enable_x64"), "this JAX has no jax.enable_x64"),
}
"""File name -> with which JAX it does not hold, and why. The table in README says so too."""

OPTIONS = argparse.Namespace(python=sys.executable, timeout=180.0, pythonpath=[], extra="", first_line=False)


def as_parameter(path: Path) -> object:
    marks = []
    if path.name in KNOWN_MISSES:
        marks.append(pytest.mark.xfail(strict=True, reason=KNOWN_MISSES[path.name]))
    if path.name in OLD_JAX:
        condition, reason = OLD_JAX[path.name]
        marks.append(pytest.mark.xfail(condition, reason=reason, strict=True))
    return pytest.param(path, id=path.stem.removeprefix("test_"), marks=marks)


@pytest.mark.parametrize("path", [as_parameter(path) for path in CASES])
def test_case(path: Path) -> None:
    header = read_header(path)
    run = run_case(path, header, OPTIONS)
    holds, reasons = judge(path, header, run, OPTIONS)
    if holds is None:
        pytest.skip(reasons[0])
    assert holds, "; ".join(reasons) + "\n" + run.output


def test_cases_ask_for_failure_and_for_success() -> None:
    assert {read_header(path).get("expect") for path in CASES} == {"pass", "fail", "error"}


def test_known_misses_name_cases() -> None:
    assert {*KNOWN_MISSES, *OLD_JAX} <= {path.name for path in CASES}


PLAIN_CASE = """\
# case: a test that {does}
# expect: {expect}
def test_it():
    assert {truth}
"""


@pytest.mark.parametrize(
    ("expect", "truth", "holds"), [("pass", True, True), ("pass", False, False), ("fail", True, False)]
)
def test_runner_tells_failure_from_success(tmp_path: Path, expect: str, truth: bool, holds: bool) -> None:
    path = tmp_path / "test_plain.py"
    path.write_text(PLAIN_CASE.format(does="passes" if truth else "fails", expect=expect, truth=truth))
    header = read_header(path)
    assert judge(path, header, run_case(path, header, OPTIONS), OPTIONS)[0] is holds
