"""Each of these tests fails. The numbers are right in all but the last, and JAX traces the same thing again."""

import jax.numpy as jnp
from jit_fresh_calls import amplified, cubed, jit_fresh_call, running_sum, scaled, set_gain

X = jnp.array([3.0, 4.0])


def test_lambda_made_on_each_call(assert_traced_once):
    guarded = assert_traced_once(jit_fresh_call)
    for _ in range(3):
        assert guarded(X) == 25.0


def test_nested_function_made_on_each_call(assert_traced_once):
    with assert_traced_once(scaled):
        for scale in [1.0, 2.0, 3.0]:
            assert scaled(X, scale).tolist() == [3.0 * scale, 4.0 * scale]


def test_factory_called_on_each_call(assert_traced_once):
    with assert_traced_once(cubed):
        for _ in range(3):
            assert cubed(X).tolist() == [27.0, 64.0]


def test_python_float_then_array(assert_traced_once):
    with assert_traced_once(running_sum):
        assert running_sum([X, X, X]) == 75.0


def test_value_that_went_stale():
    assert amplified(X).tolist() == [3.0, 4.0]
    set_gain(2.0)
    assert amplified(X).tolist() == [6.0, 8.0]
