"""What `jit_cached_call` computes, and that JAX traces it once for each length."""

import jax
import jax.numpy as jnp
import pytest
from jit_cached_call import jit_cached_call

# What it computes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 4.0], 25.0),
        ([1.0, 2.0, 3.0], 14.0),
        ([], 0.0),
        ([-2.0, -3.0], 13.0),
        ([0.5, -1.5], 2.5),
    ],
)
def test_sum_of_squares(values, expected):
    assert jit_cached_call(jnp.array(values, jnp.float32)) == expected


def test_squares_before_it_sums():
    x = jnp.array([1.0, -1.0, 2.0], jnp.float32)
    assert jit_cached_call(x) == 6.0  # the square of the sum is 4


def test_result_is_a_float32_scalar():
    result = jit_cached_call(jnp.array([3.0, 4.0], jnp.float32))
    assert result.dtype == jnp.float32
    assert result.shape == ()


def test_result_is_a_jax_array():
    result = jit_cached_call(jnp.array([3.0, 4.0], jnp.float32))
    assert isinstance(result, jax.Array)
    assert not isinstance(result, float)


# That it is traced once


def test_traced_once_wrapped(assert_traced_once):
    guarded = assert_traced_once(jit_cached_call)  # judged at the call that retraces
    for step in range(5):
        assert guarded(jnp.full(16, step, jnp.float32)) == 16 * step**2


def test_traced_once_in_a_block(assert_traced_once):
    with assert_traced_once(jit_cached_call) as traces:  # judged when the block ends
        for step in range(5):
            jit_cached_call(jnp.full(17, step, jnp.float32))
    assert len(traces) == 1


def test_traced_once_for_each_length_wrapped(assert_traced_once):
    guarded = assert_traced_once(jit_cached_call)
    for length in [18, 19, 18, 19]:
        assert guarded(jnp.ones(length, jnp.float32)) == length


def test_traced_once_for_each_length_in_a_block(assert_traced_once):
    with assert_traced_once(jit_cached_call) as traces:
        for length in [20, 21, 20, 21]:
            jit_cached_call(jnp.ones(length, jnp.float32))
    assert len(traces) == 2
