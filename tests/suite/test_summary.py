"""`--jitcache-summary`: what the table says, and when it is silent."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys

import pytest

SOURCE = """
def scale(k, x): return k * x
def test_first():
    for _ in range(3): reverse(jnp.arange(8))
def test_second():
    reverse(jnp.arange(8))
    jax.jit(functools.partial(scale, 2.0))(jnp.ones(3))
    jax.jit(functools.partial(scale, 2.0))(jnp.ones(4))
"""


def rows(run) -> dict[str, list[str]]:
    """Function -> traces, signatures, wasted, compiles, tests, as the table has them."""
    found = {}
    for line in run.output.splitlines():
        row = re.match(r"\s*[\d.]+ +(\d+) +(\d+) +(\d+) +[\d.]+ +(\d+) +(\d+) +(\S+) +test_it.py:\d+$", line)
        if row:
            *numbers, name = row.groups()
            found[name] = [int(n) for n in numbers]
    return found


def test_counts(suite):
    run = suite(SOURCE, "--jitcache-summary")
    assert rows(run) == {"reverse.<lambda>": [4, 1, 3, 4, 2], "partial(scale)": [2, 2, 0, 2, 1]}
    assert "traced again: new function object\n" in run.output
    assert "in test_it.py::test_first, test_it.py::test_second" in run.output
    assert re.search(
        r"[\d.]+ s, \d+ % of [\d.]+ s: tracing [\d.]+ s, lowering [\d.]+ s, compiling [\d.]+ s", run.output
    )
    assert re.search(
        r"wasted: [\d.]+ s on 3 traces that had been made before, of 1 function$", run.output, re.MULTILINE
    )


def test_trace_of_a_later_test_is_wasted_only_for_a_function_made_anew(suite):
    run = suite(
        """
        @jax.jit
        def low(x, cut): return x < cut
        def make(n): return jax.jit(lambda x: jnp.tile(x, n))
        def test_a(): reverse(jnp.arange(8)); low(1.0, 1.0); make(2)(jnp.ones(2))
        def test_b(): reverse(jnp.arange(8)); low(1.0, jnp.float32(1.0)); make(3)(jnp.ones(2))
        """,
        "--jitcache-summary",
    )
    wasted = {name: numbers[2] for name, numbers in rows(run).items()}
    assert wasted == {"reverse.<lambda>": 1, "low": 0, "make.<lambda>": 0}


def test_headline_follows_the_title(suite):
    for title, following in itertools.pairwise(suite(SOURCE, "--jitcache-summary").output.splitlines()):
        if "jitcache: tracing and compiling" in title:
            assert re.match(r"[\d.]+ s, ", following)
            return
    raise AssertionError("no title")


def test_limit(suite):
    run = suite(SOURCE, "--jitcache-summary=1")
    assert len(rows(run)) == 1
    assert "... and 1 more function for " in run.output


def test_quiet_and_silent(suite):
    quiet = suite(SOURCE, "--jitcache-summary", "-q").output
    assert "reverse.<lambda>" in quiet
    assert "traced again:" not in quiet
    very_quiet = suite(None, "--jitcache-summary", "-qq").output
    assert re.search(r"^jitcache: [\d.]+ s, ", very_quiet, re.MULTILINE)
    assert "reverse" not in very_quiet
    assert "jitcache" not in suite(
        None, "--jitcache-summary", "--no-summary", "--no-header", "-p", "no:xdist"
    ).output.replace("jax-jitcache", "")


def test_colour_and_bars_only_in_a_terminal(suite):
    assert "█" in suite(SOURCE, "--jitcache-summary", "--color=yes").output
    plain = suite(None, "--jitcache-summary").output
    assert "█" not in plain
    assert "\x1b" not in plain


def test_summary_of_others_is_left_alone(suite):
    suite.write("conftest.py", "def pytest_terminal_summary(terminalreporter): terminalreporter.section('mine')")
    run = suite(SOURCE, "--jitcache-summary", "--durations=2")
    assert "= mine =" in run.output
    assert "slowest 2 durations" in run.output


def test_time_of_jaxs_own_operations_is_told_apart(suite):
    run = suite("def test_it(): jnp.linspace(0, 1, 7).sort()", "--jitcache-summary")
    assert re.search(
        r"JAX's own operations outside of your jitted functions: [\d.]+ s in \d+ compiles, most for \w+", run.output
    )
    assert rows(run) == {}


def test_removed_listeners_are_told(suite):
    run = suite(
        """
        def test_it():
            jax.monitoring.clear_event_listeners()
            reverse(jnp.arange(8))
        def test_after():
            for _ in range(2): reverse(jnp.arange(9))
        """,
        "--jitcache-summary",
        "--jitcache-strict",
        "-rf",
    )
    assert "jitcache: 1 test not seen whole, first test_it.py::test_it" in run.output
    assert run.failed == ["test_after"]


def test_rule_is_named_only_where_the_linter_speaks(suite):
    """The linter takes the code of a test for code that runs once, so a function made in a test is none of its findings."""
    run = suite(
        """
        @pytest.mark.parametrize("n", [1, 2])
        def test_it(n):
            jax.jit(lambda x: x + 1)(jnp.ones(3))
        """,
        "--jitcache-summary",
    )
    assert rows(run)["test_it.<lambda>"] == [2, 1, 1, 2, 2]
    assert "traced again: new function object\n" in run.output


def test_rule_is_the_one_that_the_linter_finds(suite):
    suite.write(
        "model.py",
        """
        import jax
        import jax.numpy as jnp

        def loss(w): return jnp.sum(w ** 2)
        def gradient(w): return jax.jit(jax.grad(loss))(w)
        def make(k): return jax.jit(lambda w: k * w)
        def scaled(w): return make(2.0)(w)
        def total(ws): return jax.lax.scan(lambda c, w: (c + w, None), 0.0, ws)[0]
        """,
    )
    run = suite(
        """
        import model
        def by_a_test_alone(w): return jax.jit(lambda w: w + 1)(w)
        def test_it():
            for _ in range(2):
                w = jnp.ones(3)
                model.gradient(w), model.scaled(w), model.total(w), by_a_test_alone(w)
        """,
        "--jitcache-summary",
    )
    for name, rule in {
        "grad(loss)": "; flake8 finds it as JIT105",
        "make.<lambda>": "; flake8 finds it as JIT106",
        "total.<lambda>": "",
        "by_a_test_alone.<lambda>": "",
    }.items():
        after = run.output.partition(f" {name}  ")[2].splitlines()
        assert after[1].strip() == f"traced again: new function object{rule}", name
    pytest.importorskip("flake8")
    linted = subprocess.run(
        [sys.executable, "-m", "flake8", "--isolated", "--select=JIT,JIT401", "model.py"],
        cwd=suite.folder, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    assert [line.split()[1] for line in linted.splitlines()] == ["JIT105", "JIT106"]


def test_compile_of_an_eager_scan_is_charged_to_its_body(suite):
    run = suite("def test_it(): jax.lax.scan(lambda c, x: (c + x, x), 0.0, jnp.ones(4))", "--jitcache-summary")
    assert rows(run)["test_it.<lambda>"] == [1, 1, 0, 1, 1]


def test_compile_of_a_checkpoint_is_charged_to_its_body(suite):
    run = suite(
        "def test_it():\n    for _ in range(2): jax.jit(jax.checkpoint(lambda x: jnp.sin(x)))(jnp.ones(3))",
        "--jitcache-summary",
    )
    assert list(rows(run).values()) == [[2, 1, 1, 2, 1]]


def test_traces_only_looked_at_are_not_wasted(suite):
    """As flax.linen does it: the shape of an initializer is looked at with `eval_shape` at each call."""
    run = suite(
        """
        def init(n, x): return jnp.ones(n) + x
        def test_it():
            for _ in range(3): jax.eval_shape(functools.partial(init, 3), 1.0)
        """,
        "--jitcache-summary",
    )
    assert rows(run)["partial(init)"] == [3, 1, 0, 0, 1]


def test_share_is_of_the_clock_although_threads_work_side_by_side(suite):
    run = suite(
        """
        import threading, time
        def slow(k): jax.jit(lambda x: time.sleep(2) or x + k)(1.0)
        def test_it():
            threads = [threading.Thread(target=slow, args=(k,)) for k in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """,
        "--jitcache-summary",
        "--jitcache-json=run.json",
    )
    totals = run.json["totals"]
    assert totals["busy_seconds"] < totals["wall_seconds"] < sum(totals["seconds"].values())
    assert re.search(r"^[\d.]+ s on several threads, in [\d.]+ s, \d\d? % of [\d.]+ s: ", run.output, re.MULTILINE)


def test_seconds_of_one_thread_are_those_of_the_clock(suite):
    totals = suite(SOURCE, "--jitcache-json=run.json").json["totals"]
    assert totals["busy_seconds"] == pytest.approx(sum(totals["seconds"].values()), rel=0.1)
