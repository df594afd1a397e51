"""`--jitcache-check-captures`: which functions keep a stale value, and in which test it changed."""

from __future__ import annotations

JSON = ("--jitcache-json", "run.json")

TRAIN = """\
import jax, jax.numpy as jnp

SCALE = 1.0
TABLE = {"rate": 1.0}

@jax.jit
def step(x):
    return x * SCALE

@jax.jit
def other(x):
    return x * TABLE["rate"]
"""

TESTS = """
import train
X = jnp.ones(2)

def test_traces():
    assert train.step(X)[0] == 1.0
    train.other(X)

def test_patches_and_puts_back(monkeypatch):
    monkeypatch.setattr(train, "SCALE", 3.0)
    assert train.step(X)[0] == 1.0  # wrong, but put back before anybody looks

def test_changes():
    train.TABLE["rate"] = 5.0

def test_traces_while_patched(monkeypatch):
    monkeypatch.setattr(train, "SCALE", 3.0)
    assert train.step(jnp.ones(3))[0] == 3.0

def test_local_function():
    k = 1.0
    f = jax.jit(lambda x: x * k)
    f(X)
    k = 2.0

def test_gets_a_wrong_number():
    assert train.step(jnp.ones(3))[0] == 3.0
    assert train.other(X)[0] == 1.0
"""

STALE = """\
jitcache: 2 functions keep a stale value; --jitcache-strict shows each in full:
  other keeps a stale value: TABLE['rate'] (1.0 when traced, 5.0 now)  train.py:10
    traced in test_it.py::test_traces, changed in test_it.py::test_changes
  step keeps a stale value: SCALE (3.0 when traced, 1.0 now)  train.py:6
    traced in test_it.py::test_traces_while_patched, changed in test_it.py::test_traces_while_patched
"""


def test_summary_and_json_tell_the_test_in_which_it_changed(suite):
    suite.write("train.py", TRAIN)
    run = suite(TESTS, *JSON, "--jitcache-check-captures")
    assert run.status == 0, run.output
    assert STALE in run.output
    first, second = run.json["stale_values"]
    assert first["test"] == "test_it.py::test_changes"
    assert first["changes"] == [{"path": "TABLE['rate']", "before": "1.0", "after": "5.0", "read_at": "train.py:12"}]
    assert first["traced_in"] == "test_it.py::test_traces"
    assert "fix: Pass `TABLE['rate']` to `other` as an argument." in first["text"]
    assert second["title"] == "step keeps a stale value: SCALE (3.0 when traced, 1.0 now)"
    counts = {f["name"]: f["traces"] for f in run.json["functions"]}
    assert counts["step"] == 2, "the body is traced once more for the proof, and counted by nobody"


def test_strict_makes_it_an_error_of_that_test(suite):
    suite.write("train.py", TRAIN)
    run = suite(TESTS, *JSON, "--jitcache-check-captures", "--jitcache-strict")
    assert run.status == 1
    assert "6 passed, 2 errors" in run.output
    assert "ERROR at teardown of test_changes" in run.output
    assert "E   pytest_jitcache.StaleValueError: other keeps a stale value: TABLE['rate']" in run.output
    assert "fix: Pass `TABLE['rate']` to `other` as an argument." in run.output
    assert "pytest_jitcache/suite" not in run.output


def test_without_the_option_nothing_is_looked_at(suite):
    suite.write("train.py", TRAIN)
    run = suite(TESTS, *JSON)
    assert run.status == 0, run.output
    assert "stale" not in run.output
    assert run.json["stale_values"] == []


def test_ini_file_turns_it_on(suite):
    suite.write("train.py", TRAIN)
    suite.write("pytest.ini", "[pytest]\njitcache_check_captures = true\n")
    run = suite(TESTS, *JSON)
    assert STALE in run.output
