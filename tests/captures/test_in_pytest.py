"""The forms of `check_captures=True` in real pytest runs, with the whole text of a failure."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """\
import jax, jax.numpy as jnp, numpy as np, pytest

SCALE = 1.0
X = jnp.ones(2)

@jax.jit
def step(x):
    return x * SCALE

@jax.jit
def noise(x):
    return x + np.random.normal()
"""


@pytest.fixture
def run(tmp_path: Path):
    def run(source: str, *args: str) -> tuple[int, str]:
        (tmp_path / "test_it.py").write_text(HEAD + textwrap.dedent(source))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
            cwd=tmp_path, env={**env, "JAX_PLATFORMS": "cpu", "COLUMNS": "150"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


TEXT = """\
E       pytest_jitcache.StaleValueError: step keeps a stale value: SCALE (1.0 when traced, 2.0 now)
E       
E       `step` is defined at test_it.py:6.
E         traced at test_it.py:16 in test_wrap
E             x: f32[2]
E         changed: SCALE: 1.0 when traced, 2.0 now (read at test_it.py:8)
E         differs in the program: a constant 1.0, 2.0 now
E       
E       why: `step` read `SCALE` while it was traced. A warm call runs the program of that trace and does not look
E            again, so it goes on with the old value and nothing tells.
E       fix: Pass `SCALE` to `step` as an argument.
"""


def test_wrap_fails_at_the_call_that_used_it_with_the_whole_text(run):
    status, out = run("""
        def test_wrap(assert_traced_once, monkeypatch):
            wrapped = assert_traced_once(step, check_captures=True)
            wrapped(X)
            monkeypatch.setitem(globals(), "SCALE", 2.0)
            assert wrapped(X)[0] == 1.0, "not reached: the call raises"
        """)
    assert status == 1
    assert TEXT in out, out
    assert ">       assert wrapped(X)[0]" in out
    assert "pytest_jitcache/" not in out


def test_wrap_of_what_is_impure_fails_at_the_end_of_the_test(run):
    status, out = run("""
        def test_noise(assert_traced_once):
            wrapped = assert_traced_once(noise, check_captures=True)
            assert wrapped(X)[0] == wrapped(X)[0]  # which is wrong
        """)
    assert status == 1
    assert "StaleValueError: noise gives another program each time it is traced" in out
    assert "fix: Draw the numbers with `jax.random` from a key that is passed to `noise`" in out


def test_wrap_is_quiet_where_the_value_changes_after_the_last_call(run):
    status, out = run("""
        def test_wrap(assert_traced_once, monkeypatch):
            wrapped = assert_traced_once(step, check_captures=True)
            wrapped(X)
            wrapped(X)
            monkeypatch.setitem(globals(), "SCALE", 2.0)
        """)
    assert status == 0, out


def test_mark_and_block(run):
    status, out = run("""
        @pytest.mark.traced_once("test_it.step", check_captures=True)
        def test_mark(monkeypatch):
            step(X)
            monkeypatch.setitem(globals(), "SCALE", 2.0)
            assert step(X)[0] == 1.0

        def test_block(assert_traced_once, monkeypatch):
            with assert_traced_once(step, check_captures=True):
                step(X)
                monkeypatch.setitem(globals(), "SCALE", 2.0)
                assert step(X)[0] == 1.0

        def test_anything(assert_traced_once, monkeypatch):
            with assert_traced_once(check_captures=True):
                noise(X)

        def test_without(assert_traced_once, monkeypatch):
            with assert_traced_once(step):
                step(X)
                monkeypatch.setitem(globals(), "SCALE", 2.0)
                step(X)

        @pytest.mark.traced_once("test_it.step", check_captures=1)
        def test_wrong(): ...
        """)
    assert status == 1
    assert "4 failed, 1 passed" in out
    assert out.count("StaleValueError: step keeps a stale value: SCALE (1.0 when traced, 2.0 now)") >= 2
    assert "StaleValueError: noise gives another program each time it is traced" in out
    assert "check_captures must be True or False, got 1." in out


def test_body_that_is_traced_for_the_proof_is_counted_by_nobody(run):
    status, out = run("""
        def test_outer(assert_traced_once):
            with assert_traced_once() as outer:
                with assert_traced_once(step, check_captures=True) as inner:
                    step(X)
                step(X)
            assert (len(outer), len(inner)) == (1, 1)
        """, "--jitcache-strict")  # fmt: skip
    assert status == 0, out
