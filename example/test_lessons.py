"""The three lessons: what each computes, and how often JAX traces it."""

import jax.numpy as jnp
import pytest
from lessons import cube, norm, scaled


def test_kept_product_of_a_factory(assert_traced_once):
    guarded = assert_traced_once(cube)
    for value in [2.0, 3.0]:
        assert guarded(jnp.full(4, value, jnp.float32)).tolist() == [value**3] * 4


def test_changing_scale_is_an_argument(assert_traced_once):
    x = jnp.array([1.0, 2.0], jnp.float32)
    with assert_traced_once(scaled) as traces:
        assert scaled(x, 2.0).tolist() == [2.0, 4.0]
        assert scaled(x, 10.0).tolist() == [10.0, 20.0]  # the new scale, and no new trace
    assert len(traces) == 1


def test_static_argument_is_traced_once_for_each_value(assert_traced_once):
    x = jnp.array([3.0, -4.0], jnp.float32)
    with assert_traced_once(norm) as traces:
        for _ in range(3):
            assert norm(x, order=1) == 7.0
            assert norm(x, order=2) == 5.0
    assert len(traces) == 2


def test_unknown_order_is_refused():
    with pytest.raises(ValueError, match="order is 3, allowed are 1 and 2"):
        norm(jnp.ones(2, jnp.float32), order=3)
