"""What varies between the signatures of a function, and the limit on how many it may have in one test."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from pytest_jitcache import RetraceError, traced_once

SIZES = """
@jax.jit
def step(x):
    return x + 1

def test_sizes():
    for n in range(1, 10):
        step(jnp.ones((n, 3)))

def test_one_size():
    for _ in range(3):
        step(jnp.ones((2, 3)))
"""


def test_summary_and_json_say_what_varies(suite):
    run = suite(SIZES, "--jitcache-summary", "--jitcache-json", "run.json")
    assert run.status == 0, run.output
    assert "9 signatures: only x.shape[0] differs (1, 2, 3, ...)" in run.output
    assert run.function("step")["varies"] == "9 signatures: only x.shape[0] differs (1, 2, 3, ...)"


def test_limit_fails_the_test_that_has_more(suite):
    run = suite(SIZES, "--jitcache-strict-signatures", "3")
    assert run.status == 1
    assert run.failed == ["test_sizes"]
    assert "RetraceError: step has 9 signatures in this test, allowed 3" in run.output
    assert "only x.shape[0] differs (1, 2, 3, ...)" in run.output
    assert "fix: Where a size differs, pad to one (or a few)" in run.output


def test_limit_that_is_kept_and_values_that_are_wrong(suite):
    assert suite(SIZES, "--jitcache-strict-signatures", "9").status == 0
    for value in ("0", "-1", "many"):
        run = suite(None, f"--jitcache-strict-signatures={value}")
        assert run.status == 4
        assert (
            "--jitcache-strict-signatures is the number of signatures that a function may have in one test"
            in run.output
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    x: jax.Array
    step: int = dataclasses.field(metadata={"static": True})


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([(jnp.ones(n),) for n in (1, 2, 3, 4)], "4 signatures: only x.shape[0] differs (1, 2, 3, ...)"),
        ([(jnp.ones(2), n) for n in (1, 2, 3)], "3 signatures: only n differs (static: 1, 2, 3)"),
        ([(State(jnp.ones(2), n),) for n in (1, 2, 3)], "3 signatures: only metadata of x differs"),
        (
            [(jnp.ones(2),), (jnp.ones(2, int),), (jnp.ones(3),)],
            "3 signatures: x.dtype (f32, i32) and x.shape[0] differ",
        ),
        (
            [({"a": jnp.ones(2)},), ({"b": jnp.ones(2)},), ({"c": jnp.ones(2)},)],
            "3 signatures: only the structure of x differs",
        ),
    ],
)
def test_failure_per_total_says_what_varies(calls, told):
    step = jax.jit(lambda x, n=0: jax.tree.leaves(x)[0] + n, static_argnames="n")
    with pytest.raises(RetraceError) as caught, traced_once(step, per="total"):
        for call in calls:
            step(*call)
    assert told in str(caught.value)
