"""Options: what is allowed, what wins, and that nothing is loaded without them."""

from __future__ import annotations

import pytest

PASSING = """
def test_it():
    jax.jit(lambda x: x + 1)(1.0)
"""

WRONG = {
    "summary": (
        ["--jitcache-summary=many"],
        "",
        "--jitcache-summary is the number of functions to list, 0 or more; got 'many'",
    ),
    "summary below 0": (["--jitcache-summary=-1"], "", "got '-1'"),
    "ini summary": (
        [],
        "jitcache_summary = maybe",
        "ini jitcache_summary is the number of functions to list, 0 or more, true or false; got 'maybe'",
    ),
    "ini strict": (
        [],
        "jitcache_strict = maybe",
        "ini jitcache_strict is one of true, yes, on, 1, false, no, off, 0: invalid truth value 'maybe'",
    ),
    "ini allow": (
        [],
        "jitcache_allow = a b",
        "ini jitcache_allow is a list of dotted names such as package.module.function or package.*, one a line; got 'a b'",
    ),
    "json is a folder": (["--jitcache-json=."], "", "--jitcache-json is the name of a file; '.' is a folder"),
    "timeline is empty": (["--jitcache-timeline="], "", "--jitcache-timeline is the name of a file; got ''"),
    "no baseline there": (
        ["--jitcache-baseline=none.json"],
        "",
        "none.json does not exist; --jitcache-update-baseline writes it",
    ),
    "update without file": (["--jitcache-update-baseline"], "", "--jitcache-update-baseline needs the file to write"),
    "baseline without strict": (["--jitcache-baseline=b.json", "--no-jitcache-strict"], "", "exclude each other"),
}


@pytest.mark.parametrize(("args", "ini", "text"), WRONG.values(), ids=WRONG.keys())
def test_wrong_value_is_one_line(suite, args, ini, text):
    suite.write("pytest.ini", f"[pytest]\n{ini}\n")
    run = suite(PASSING, *args)
    assert run.status == 4
    (line,) = [line for line in run.output.splitlines() if line.startswith("ERROR: ")]
    assert text in line
    assert "Traceback" not in run.output


BROKEN = {
    "{": "it is no JSON (line 1, column 2)",
    "[]": "it holds []",
    "{}": "it has no schema",
    '{"schema": "other"}': "its schema is 'other'",
    '{"schema": "jitcache-baseline"}': "it has no version",
    '{"schema": "jitcache-baseline", "version": 2}': "its version is 2",
    '{"schema": "jitcache-baseline", "version": true, "retraces": {}}': "its version is True",
    '{"schema": "jitcache-baseline", "version": 1}': "it has no retraces",
    '{"schema": "jitcache-baseline", "version": 1, "retraces": [1]}': "its retraces are [1]",
    '{"schema": "jitcache-baseline", "version": 1, "retraces": {"a": "b"}}': "its retraces of a are 'b'",
    '{"schema": "jitcache-baseline", "version": 1, "retraces": {"a": [1]}}': "its retraces of a are [1]",
}


@pytest.mark.parametrize(("text", "wrong"), BROKEN.items())
def test_broken_baseline_is_one_line(suite, text, wrong):
    suite.write("b.json", text)
    run = suite(PASSING, "--jitcache-baseline=b.json")
    assert run.status == 4
    (line,) = [line for line in run.output.splitlines() if line.startswith("ERROR: ")]
    form = '{"schema": "jitcache-baseline", "version": 1, "retraces": {TEST: [FUNCTION, ...]}}'
    assert f"b.json cannot be used: {wrong}; expected is {form}. " in line
    assert "Traceback" not in run.output


native_toml = pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="this pytest has no native TOML configuration")
several_types = pytest.mark.skipif(pytest.version_tuple < (9, 2), reason="an option of this pytest has one type")


def toml(suite, line: str) -> None:
    (suite.folder / "pytest.ini").unlink()
    suite.write("pyproject.toml", f"[tool.pytest]\n{line}\n")


@native_toml
@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("jitcache_strict = true", "jitcache: strict"),
        ("jitcache_strict = false", ""),
        pytest.param("jitcache_summary = 5", "jitcache: summary of 5 functions", marks=several_types),
        pytest.param("jitcache_summary = true", "jitcache: summary of 20 functions", marks=several_types),
        pytest.param("jitcache_summary = false", "", marks=several_types),
        pytest.param("jitcache_summary = 0", "", marks=several_types),
        ('jitcache_summary = "5"', "jitcache: summary of 5 functions"),
        ('jitcache_json = "run.json"', "jitcache: run.json"),
        ('jitcache_strict = true\njitcache_allow = ["package.*"]', "jitcache: strict"),
    ],
)
def test_native_toml_has_values_of_its_own_types(suite, line, header):
    toml(suite, line)
    run = suite("def test_it(): pass", head="")
    assert run.status == 0
    found = [line for line in run.output.splitlines() if line.startswith("jitcache: ") and "nothing was" not in line]
    assert found == [header] * bool(header)


@native_toml
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("jitcache_strict = 5", "ini jitcache_strict is one of true, yes, on, 1, false, no, off, 0: "),
        ("jitcache_summary = [5]", "ini jitcache_summary is the number of functions to list, 0 or more, true or false"),
        ("jitcache_summary = -1", "ini jitcache_summary is the number of functions to list, 0 or more, true or false"),
        ("jitcache_json = 5", "ini jitcache_json is the name of a file: "),
        ('jitcache_allow = "a"', "ini jitcache_allow is a list of dotted names such as package.module.function"),
    ],
)
def test_wrong_value_in_native_toml_is_one_line(suite, line, text):
    toml(suite, line)
    run = suite("def test_it(): pass", head="")
    assert run.status == 4
    (line,) = [line for line in run.output.splitlines() if line.startswith("ERROR: ")]
    assert text in line


@pytest.mark.parametrize(
    "args",
    [
        ["--jitcache-summary", "test_it.py"],
        ["--jitcache-summary", "1", "test_it.py"],
        ["test_it.py", "--jitcache-summary"],
    ],
)
def test_path_after_summary_is_a_path(suite, args):
    suite.write("test_other.py", "def test_other(): raise SystemError")
    run = suite(PASSING, *args)
    assert run.status == 0
    assert "jitcache: tracing and compiling" in run.output


def test_command_line_wins_over_ini(suite):
    suite.write("pytest.ini", "[pytest]\njitcache_summary = true\njitcache_json = ini.json\n")
    run = suite(PASSING, "--jitcache-summary=0", "--jitcache-json=run.json")
    assert "jitcache: tracing" not in run.output
    assert run.json["totals"]["traces"] == 1
    assert not (suite.folder / "ini.json").exists()


def test_ini_alone(suite):
    suite.write(
        "pytest.ini", "[pytest]\njitcache_summary = 3\njitcache_json = out/run.json\njitcache_timeline = t.json\n"
    )
    run = suite(PASSING)
    assert "jitcache: summary of 3 functions, run.json, t.json" in run.output
    assert "jitcache: tracing and compiling" in run.output
    assert (suite.folder / "out" / "run.json").exists()
    assert (suite.folder / "t.json").exists()


LOADED = """
import sys
def test_it(): pass
def pytest_unconfigure(): pass
"""

REPORTER = """
import sys
def pytest_unconfigure():
    for name in ("jax", "pytest_jitcache.suite.plugin", "pytest_jitcache.recorder"):
        print(name, "loaded" if name in sys.modules else "absent")
"""


def test_nothing_is_loaded_without_options(suite):
    suite.write("conftest.py", REPORTER)
    run = suite(LOADED, head="")
    assert run.status == 0
    for name in ("jax", "pytest_jitcache.suite.plugin", "pytest_jitcache.recorder"):
        assert f"{name} absent" in run.output


def test_jax_is_not_imported_for_a_suite_without_it(suite):
    suite.write("conftest.py", REPORTER)
    run = suite(LOADED, "--jitcache-summary", "--jitcache-strict", "--jitcache-json=run.json", head="")
    assert run.status == 0
    assert "jax absent" in run.output
    assert "jitcache: nothing was traced or compiled in this run." in run.output
    assert run.json["functions"] == []


def test_jax_imported_inside_a_test_is_seen(suite):
    run = suite(
        """
        def test_it():
            import jax
            for _ in range(2): jax.jit(lambda x: x + 1)(1.0)
        """,
        "--jitcache-strict",
        "-rf",
        head="",
    )
    assert run.failed == ["test_it"]
