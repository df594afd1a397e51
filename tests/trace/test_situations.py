"""Real pytest runs in processes of their own: forms, plugins and options around the guard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import jax
import pytest

JAX = jax.__version_info__
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
    assert "JAX says" not in out


SEVEN = """
def test_seven(assert_traced_once):
    with assert_traced_once():
        for _ in range(7):
            jax.jit(lambda v: v + 1)(X)

def test_afterwards():
    assert not jax.config.jax_explain_cache_misses
"""


def test_very_verbose_shows_all_traces_and_what_jax_itself_says(run):
    status, out = run(SEVEN, "-vv")
    assert status == 1
    assert "1 failed, 1 passed" in out
    known = out.partition("all that is known")[2]
    for number in range(1, 8):
        assert f"trace {number} at test_it.py:" in known
    assert known.count("TRACING CACHE MISS at ") == known.count("never seen function") == 7
    assert "but seen another function defined on the same line" in known
    assert "Captured" not in out  # what was asked for our sake goes nowhere else


def test_very_verbose_says_which_argument_differs_for_jax_and_where_a_wrap_was_called(run):
    out = run(
        """
        def test_it(assert_traced_once):
            guarded = assert_traced_once(step)
            guarded(X, 0.1)
            guarded(X, jnp.float32(0.1))
        """,
        "-vv",
    )[1]
    known = out.partition("all that is known")[2]
    assert "* at rate, " in known
    assert known.count("weak_type=") >= 2
    assert "test_it.py:13" in known.partition("MISS at ")[2].partition("\n")[0]
    assert "pytest_jitcache/" not in out


def test_very_verbose_leaves_the_users_own_explanations_in_the_log(run):
    status, out = run(
        """
        def test_it(assert_traced_once, caplog):
            with assert_traced_once(step):
                step(X, 0.1)
            assert "CACHE MISS" not in caplog.text
            with assert_traced_once(step), jax.explain_cache_misses(True):
                step(X, 0.1)
            assert "CACHE MISS" in caplog.text
        """,
        "-vv",
    )
    assert (status == 0) == (JAX >= (0, 5)), out  # 0.4.35 does not say whose wish a setting is


@pytest.mark.parametrize("option", ["--assert=plain", "--tb=short", "--tb=line", "--tb=native", "-p no:randomly"])
def test_other_options(run, option):
    status, out = run(RETRACE, *option.split())
    assert status == 1
    assert "step traced 2x, allowed 1: weak type (rate)" in out


SHORT = re.compile(r"weak type \(rate\) at test_it\.py:\d+: step traced 2x, allowed 1")


def test_junit_carries_one_line(run, tmp_path):
    run(RETRACE, "--junitxml=out.xml")
    [message] = re.findall(r'message="(.*?)"', (tmp_path / "out.xml").read_text())
    assert SHORT.fullmatch(message)


@pytest.mark.parametrize("option", ["-q", "--tb=no"])
def test_summary_keeps_cause_and_place_where_pytest_cuts(run, monkeypatch, option):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)
    out = run(RETRACE, option)[1]
    assert re.search(r"^FAILED test_it.py::test_retrace - weak type \(rate\) at test_it.py:\d+", out, re.MULTILINE)


def test_quiet_keeps_cause_and_place(run):
    out = run(RETRACE, "-q")[1]
    lines = [line for line in out.splitlines() if line.startswith("E ")]
    assert len(lines) == 1
    assert re.search(r"step traced 2x, allowed 1: weak type \(rate\) at test_it.py:\d+$", lines[0])


@pytest.mark.parametrize("environment", [{"CI": "1"}, {}], ids=["CI", "-vv"])
def test_summary_carries_the_first_line_where_pytest_does_not_cut(run, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = run(RETRACE, *([] if environment else ["-vv"]))[1]
    summary = out.partition("short test summary info")[2].splitlines()
    assert SHORT.search(summary[1])
    assert "1 failed" in summary[2]


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


MANY = """
from functools import partial

@jax.jit
def other(x):
    return x + 1

def simulate(rates):
    for rate in rates:
        yield step(X, rate)

def test_generator_ok(assert_traced_once):
    run = assert_traced_once(simulate)
    assert len(list(run([0.1, 0.2]))) == 2

def test_generator_bad(assert_traced_once):
    step.clear_cache()
    run = assert_traced_once(simulate)
    list(run([0.1, jnp.float32(0.1)]))

def test_two_functions_ok(assert_traced_once):
    with assert_traced_once(step, other) as traces:
        step(other(X)); other(step(X))
    assert sorted(t.name for t in traces) == ["other", "step"]

def test_two_functions_bad(assert_traced_once):
    with assert_traced_once(other, step):
        step(other(X), 0.1); step(other(X), jnp.float32(0.1))

@pytest.mark.parametrize("rate", [0.1, jnp.float32(0.1), 0.2])
def test_parametrised_ok(assert_traced_once, rate):
    guarded = assert_traced_once(step)  # starts cold in each
    guarded(X, rate); guarded(X, rate)

@pytest.fixture(scope="class")
def of_class(assert_traced_once):
    return assert_traced_once(step)

class TestClass:
    def test_first_ok(self, of_class):
        of_class(X, 0.1)

    def test_second_bad(self, of_class):
        of_class(X, jnp.float32(0.1))

class TestNextClass:
    def test_again_ok(self, of_class):
        of_class(X, jnp.float32(0.1))

def test_warm_from_before_bad(assert_traced_once):
    step(X, 0.1); step(X, jnp.float32(0.1))  # warm before the guard
    with assert_traced_once(step):
        step(X, 0.1); step(X, jnp.float32(0.1))

def test_exception_wins_bad(assert_traced_once):
    with assert_traced_once(step):
        step(X, 0.1); step(X, jnp.float32(0.1))
        raise LookupError("mine")

def test_expected_ok(assert_traced_once):
    with pytest.raises(AssertionError, match="step traced 2x"):
        with assert_traced_once(step):
            step(X, 0.1); step(X, jnp.float32(0.1))

def test_nested_bad(assert_traced_once):
    with assert_traced_once(step):
        step(X, 0.1)
        with assert_traced_once(other):
            other(X); step(X, jnp.float32(0.1)); other(X)
"""


def test_situations_side_by_side(run):
    status, out = run(MANY)
    assert status == 1
    results = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert len(results) == MANY.count("_bad(")
    assert all("_bad" in line for line in results), out
    assert f"{MANY.count('_bad(')} failed, {MANY.count('_ok(') + 2} passed" in out  # one is parametrised
    assert sum(bool(SHORT.search(line)) for line in results) == len(results) - 1
    assert "test_exception_wins_bad - LookupError: mine" in out
    assert "pytest_jitcache/" not in out


def test_hypothesis_with_the_fixture(run):
    pytest.importorskip("hypothesis")
    status, out = run(
        """
        from hypothesis import given, settings, strategies as st

        @settings(max_examples=5, deadline=None, database=None)
        @given(st.floats(0, 1))
        def test_holds(assert_traced_once, rate):
            with assert_traced_once(step):
                step(X, rate); step(X, rate)

        @settings(max_examples=5, deadline=None, database=None)
        @given(st.integers(2, 4))
        def test_fails(assert_traced_once, n):
            with assert_traced_once(step):
                for _ in range(n):
                    jax.jit(step.__wrapped__)(X, 0.1)
                    step(X, jnp.float32(0.1))
        """
    )
    assert status == 1
    assert "1 failed, 1 passed" in out, out
    assert "step traced 2x, allowed 1: weak type (rate)" in out


def test_subtests(run):
    if not hasattr(pytest, "Subtests"):
        pytest.importorskip("pytest_subtests")
    status, out = run(
        """
        def test_it(subtests, assert_traced_once):
            for second in (0.1, jnp.float32(0.1), 0.2):
                with subtests.test(rate=str(second)):
                    with assert_traced_once(step):
                        step(X, 0.1); step(X, second)
        """
    )
    assert status == 1
    assert out.count("RetraceError: step traced 2x, allowed 1: weak type (rate)") == 1  # the failure
    assert len(SHORT.findall(out)) == 1  # and the summary
    assert "1 failed" in out or "2 failed" in out  # pytest counts a test with a failed subtest as failed too


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
        ('"test_it.step", max_traces=-1', "max_traces must be at least 0, got -1"),
        ('"test_it.X"', "takes functions"),
    ],
)
def test_wrong_mark(run, mark, message):
    status, out = run(f"@pytest.mark.traced_once({mark})\ndef test_marked():\n    step(X)\n")
    assert status == 1
    assert message in out
    assert "INTERNALERROR" not in out


WRONG = {
    "max_traces_is_text": (
        "assert_traced_once(step, max_traces='2')",
        "TypeError: max_traces must be an int, got str ('2')",
    ),
    "max_traces_is_negative": (
        "assert_traced_once(step, max_traces=-1)",
        "ValueError: max_traces must be at least 0, got -1",
    ),
    "per_is_misspelt": (
        "assert_traced_once(step, per='sig')",
        "ValueError: per must be 'signature', 'total' or 'definition', got 'sig'",
    ),
    "option_is_misspelt": (
        "assert_traced_once(step, max_trace=2)",
        "TypeError: assert_traced_once() got an unexpected",
    ),
    "result_of_a_call": ("assert_traced_once(step(X))", "TypeError: assert_traced_once takes functions, got ArrayImpl"),
    "name_of_a_function": ("assert_traced_once('test_it.step')", "not its name 'test_it.step'"),
    "list_of_functions": ("assert_traced_once([step])", "pass the functions one by one"),
    "wrap_of_none": (
        "assert_traced_once()(X)",
        "TypeError: the wrap form of assert_traced_once takes one function, got 0",
    ),
    "wrap_of_two": ("assert_traced_once(step, jnp.sin)(X)", "TypeError: the wrap form of assert_traced_once takes one"),
}


def test_wrong_argument_shows_one_line_at_the_line_of_the_test(run):
    body = "\n".join(f"def test_{name}(assert_traced_once):\n    {call}  # here\n" for name, (call, _) in WRONG.items())
    status, out = run(
        body + '\n@pytest.mark.traced_once("test_it.step", per="sig")  # here\ndef test_mark(): step(X)\n'
    )
    assert status == 1
    assert f"{len(WRONG) + 1} failed" in out
    for _, message in WRONG.values():
        assert message in out
    assert out.count(">       assert_traced_once(") + out.count(">   @pytest.mark.traced_once(") == len(WRONG) + 1
    assert out.count("\ntest_it.py:") == len(WRONG) + 1  # one frame each
    assert "pytest_jitcache/" not in out


def test_error_of_the_module_that_a_mark_names_keeps_its_place(run, tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('broken on import')\n")
    status, out = run('@pytest.mark.traced_once("broken.step")\ndef test_marked():\n    pass\n')
    assert status == 1
    assert "broken.py:1: ValueError" in out


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


ASYNC = """
{mark}
async def test_holds(assert_traced_once):
    with assert_traced_once(step):
        for rate in (0.1, 0.2):
            await {sleep}(0)
            step(X, rate)

{mark}
async def test_block(assert_traced_once):
    with assert_traced_once(step):
        for rate in (0.1, jnp.float32(0.1)):
            await {sleep}(0)
            step(X, rate)

{mark}
async def test_wrap(assert_traced_once):
    guarded = assert_traced_once(step)
    guarded(X, 0.1)
    await {sleep}(0)
    guarded(X, jnp.float32(0.1))

{mark}
@pytest.mark.traced_once("test_it.step")
async def test_marked():
    step(X, 0.1)
    await {sleep}(0)
    step(X, jnp.float32(0.1))

{mark}
async def test_at_the_same_time(assert_traced_once):
    async def call(rate):
        await {sleep}(0)
        step(X, rate)
    with assert_traced_once(step):
        {gather}
"""


@pytest.mark.parametrize("plugin", ["anyio", "pytest_asyncio"])
def test_async_tests(run, plugin):
    pytest.importorskip(plugin)
    if plugin == "anyio":
        mark, sleep = "@pytest.mark.anyio", "anyio.sleep"
        gather = "async with anyio.create_task_group() as group:\n            group.start_soon(call, 0.1); group.start_soon(call, jnp.float32(0.1))"
        head = "import anyio\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    else:
        mark, sleep = "@pytest.mark.asyncio", "asyncio.sleep"
        gather = "await asyncio.gather(call(0.1), call(jnp.float32(0.1)))"
        head = "import asyncio\n"
    status, out = run(head + ASYNC.format(mark=mark, sleep=sleep, gather=gather))
    assert status == 1
    assert "4 failed, 1 passed" in out, out
    assert out.count("E       pytest_jitcache.RetraceError: step traced 2x, allowed 1: weak type (rate)") == 4, out
    assert "PASSED" not in out
    assert "pytest_jitcache/" not in out


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


def test_pytest_in_a_test_leaves_its_guards_alone(run, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "test_inner.py").write_text("def test_inner(assert_traced_once):\n    pass\n")
    status, out = run(
        """
        def test_it(assert_traced_once):
            @jax.jit
            def never_called(x):
                return x

            assert_traced_once(never_called)
            assert pytest.main(["-q", "-p", "no:cacheprovider", "inner"]) == 0
        """
    )
    assert status == 0, out
    assert (
        "never_called was never called while assert_traced_once was watching" in out.rpartition("warnings summary")[2]
    )
