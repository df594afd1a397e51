"""Real pytest runs in processes of their own: forms, plugins and options around the guard."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import jax, jax.numpy as jnp, pytest, threading
from functools import partial

@jax.jit
def step(w, rate=0.1):
    return w - rate * w

X = jnp.ones(3)
"""


@pytest.fixture
def run(tmp_path):
    def run(source, *args, head=HEAD, name="test_it.py"):
        (tmp_path / name).write_text(head + textwrap.dedent(source))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**env, "JAX_PLATFORMS": "cpu", "COLUMNS": "150"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


RETRACE = """
def test_retrace(assert_traced_once):
    with assert_traced_once(step):
        step(X, 0.1)
        step(X, jnp.float32(0.1))
"""


def test_quiet_shows_the_first_line_only(run):
    status, out = run(RETRACE, "-q")
    assert status == 1
    assert "RetraceError: step traced 2x, allowed 1: weak type (rate)" in out
    assert "differs:" not in out


def test_normal_shows_both_lines_and_the_remedy(run):
    status, out = run(RETRACE)
    assert status == 1
    assert "test_it.py:14 in test_retrace" in out
    assert "test_it.py:13 in test_retrace" in out
    assert "differs: rate: ~f32[] before, f32[] now" in out
    assert "all that is known" not in out


def test_very_verbose_shows_all_that_is_known(run):
    assert "all that is known" in run(RETRACE, "-vv")[1]


@pytest.mark.parametrize("option", ["--assert=plain", "--tb=short", "--tb=line", "--tb=native", "-p no:randomly"])
def test_other_options(run, option):
    status, out = run(RETRACE, *option.split())
    assert status == 1
    assert "step traced 2x, allowed 1: weak type (rate)" in out


def test_junit_and_summary_carry_the_first_line(run, tmp_path):
    out = run(RETRACE, "--junitxml=out.xml")[1]
    assert "step traced 2x, allowed 1: weak type (rate)" in (tmp_path / "out.xml").read_text()
    assert "FAILED test_it.py::test_retrace" in out


def test_without_the_plugin_the_function_is_importable(run):
    status, _ = run(
        """
        from pytest_jitcache import traced_once

        def test_it():
            with traced_once(step) as traces:
                step(X)
            assert len(traces) == 1
        """,
        "-p", "no:jitcache",
    )  # fmt: skip
    assert status == 0


def test_unittest_class(run):
    status, out = run(
        """
        import unittest

        class TestStep(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _guard(self, assert_traced_once):
                self.guard = assert_traced_once

            def test_holds(self):
                with self.guard(step):
                    step(X); step(X)

            def test_fails(self):
                with self.guard(step):
                    step(X, 0.1); step(X, jnp.float32(0.1))
        """
    )
    assert status == 1
    assert "1 failed, 1 passed" in out


def test_class_scoped_wrap_lives_as_long_as_its_fixture(run):
    status, out = run(
        """
        @pytest.fixture(scope="module")
        def guarded(assert_traced_once):
            return assert_traced_once(step)

        def test_one(guarded):
            guarded(X, 0.1)

        def test_two(guarded):
            guarded(X, 0.2)

        def test_three(guarded):
            guarded(X, jnp.float32(0.1))
        """
    )
    assert status == 1
    assert "1 failed, 2 passed" in out
    assert "FAILED test_it.py::test_three" in out


def test_wrap_that_is_never_called_warns(run):
    status, out = run("def test_it(assert_traced_once):\n    assert_traced_once(step)\n")
    assert status == 0
    assert "JitcacheWarning: step was never called" in out


def test_verdict_lost_on_a_thread_fails_the_test(run):
    status, out = run(
        """
        def test_it(assert_traced_once):
            guarded = assert_traced_once(step)
            def work():
                guarded(X, 0.1)
                guarded(X, jnp.float32(0.1))
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        """,
        "-p", "no:threadexception",
    )  # fmt: skip
    assert status == 1
    assert "step traced 2x, allowed 1: weak type (rate)" in out


def test_verdict_caught_from_a_pool_does_not_fail_twice(run):
    status, _ = run(
        """
        from concurrent.futures import ThreadPoolExecutor

        def test_it(assert_traced_once):
            guarded = assert_traced_once(step)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(guarded, X, 0.1).result()
                with pytest.raises(AssertionError, match="traced 2x"):
                    pool.submit(guarded, X, jnp.float32(0.1)).result()
        """
    )
    assert status == 0


def test_jit_disabled_for_one_call_spoils_the_verdict(run):
    status, out = run(
        """
        def test_block(assert_traced_once):
            with assert_traced_once(step):
                step(X)
                with jax.disable_jit():
                    step(X)

        def test_wrap(assert_traced_once):
            guarded = assert_traced_once(step)
            guarded(X)
            with jax.disable_jit():
                guarded(X)

        def test_other_function(assert_traced_once):
            with assert_traced_once(step):
                step(X)
                with jax.disable_jit():
                    jnp.sin(X)
        """
    )
    assert "2 failed, 1 passed" in out, out
    assert status == 1
    assert "step was not judged: jit disabled" in out


def test_marker_points_at_the_line_of_the_test(run):
    status, out = run(
        """
        @pytest.mark.traced_once("test_it.step")
        def test_marked():
            step(X, 0.1)
            step(X, jnp.float32(0.1))
        """
    )
    assert status == 1
    assert ">       step(X, jnp.float32(0.1))" in out
    assert "test_it.py:14: RetraceError" in out


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"test_it.missing"', "has no 'missing'"),
        ('"no.such.module"', "cannot be imported"),
        ("step, 1", "takes dotted names"),
        ('"test_it.step", max_trace=1', "has no argument 'max_trace'"),
        ('"test_it.step", max_traces=0', "max_traces must be at least 1, got 0"),
        ('"test_it.X"', "takes functions"),
    ],
)
def test_wrong_mark(run, mark, message):
    status, out = run(f"@pytest.mark.traced_once({mark})\ndef test_marked():\n    step(X)\n")
    assert status == 1
    assert message in out
    assert "INTERNALERROR" not in out


def test_mark_without_a_function_and_on_a_class(run):
    status, out = run(
        """
        @pytest.mark.traced_once
        class TestAll:
            def test_good(self):
                jax.jit(lambda v: v + 1)(X)

            def test_bad(self):
                for _ in range(2):
                    jax.jit(lambda v: v + 1)(X)
        """
    )
    assert status == 1
    assert "1 failed, 1 passed" in out


def test_strict_markers_know_ours(run):
    assert (
        run('@pytest.mark.traced_once("test_it.step")\ndef test_marked():\n    step(X)\n', "--strict-markers")[0] == 0
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_xdist(run, workers):
    pytest.importorskip("xdist")
    status, out = run(
        RETRACE + "\n\ndef test_holds(assert_traced_once):\n    with assert_traced_once(step):\n        step(X)\n",
        "-n",
        workers,
    )
    assert status == 1
    assert "1 failed, 1 passed" in out
    assert "step traced 2x, allowed 1: weak type (rate)" in out


def test_rerunfailures(run):
    pytest.importorskip("pytest_rerunfailures")
    status, out = run(
        """
        runs = []

        def test_flaky(assert_traced_once):
            runs.append(1)
            with assert_traced_once(step):
                step(X, 0.1)
                step(X, 0.1 if len(runs) > 1 else jnp.float32(0.1))
        """,
        "--reruns", "2",
    )  # fmt: skip
    assert status == 0
    assert "1 passed, 1 rerun" in out


def test_asyncio_and_a_coroutine_that_is_wrapped(run):
    status, out = run(
        """
        import asyncio

        async def epoch(rate):
            await asyncio.sleep(0)
            return step(X, rate)

        def test_it(assert_traced_once):
            guarded = assert_traced_once(epoch)
            async def main():
                await guarded(0.1)
                with pytest.raises(AssertionError, match="step traced 2x"):
                    await guarded(jnp.float32(0.1))
            step.clear_cache()
            asyncio.run(main())
        """
    )
    assert status == 0, out


def test_hypothesis_with_a_marker(run):
    pytest.importorskip("hypothesis")
    status, out = run(
        """
        from hypothesis import given, settings, strategies as st

        @pytest.mark.traced_once("test_it.step")
        @settings(max_examples=5, deadline=None, database=None)
        @given(st.floats(0, 1))
        def test_it(rate):
            step(X, rate)
        """
    )
    assert status == 0, out


def test_expected_failure_of_the_marker(run):
    status, out = run(
        """
        @pytest.mark.xfail(strict=True)
        @pytest.mark.traced_once("test_it.step")
        def test_it():
            step(X, 0.1)
            step(X, jnp.float32(0.1))
        """
    )
    assert status == 0
    assert "1 xfailed" in out


def test_jax_is_not_imported_where_it_is_not_used(run, tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    print('heavy:', [m for m in ('jax', 'pytest_jitcache.guard') if m in sys.modules])\n"
    )
    status, out = run("def test_it():\n    pass\n", head="", name="test_light.py")
    assert status == 0
    assert "heavy: []" in out


def test_profile_hook_of_somebody_else_survives(run):
    status, out = run(
        """
        import sys

        def test_it(assert_traced_once):
            seen = []
            def hook(frame, event, arg):
                seen.append(event)
            def plain(x):
                return jax.jit(lambda v: v + 1)(x)
            sys.setprofile(hook)
            try:
                with assert_traced_once(plain):
                    plain(X)
                assert sys.getprofile() is hook
            finally:
                sys.setprofile(None)
            assert seen
        """
    )
    assert status == 0, out
