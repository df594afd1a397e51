"""The four lessons: what each computes, and how often JAX traces it."""

import jax
import jax.numpy as jnp
import pytest
from lessons import Decay, cube, norm, scaled


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


def test_rate_that_is_set_counts_at_once(assert_traced_once):
    x, decay = jnp.ones(2, jnp.float32), Decay(0.5)
    with assert_traced_once(scaled, check_captures=True):
        assert decay(x).tolist() == [0.5, 0.5]
        decay.rate = 0.25
        assert decay(x).tolist() == [0.25, 0.25]  # and no new trace


class StaleDecay(Decay):
    """The fault: the jitted method reads `self.rate` when it is traced, and never again."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.call = jax.jit(self.multiply)  # noqa: JIT203

    def multiply(self, x: jax.Array) -> jax.Array:
        return self.rate * x


def test_rate_that_is_captured_goes_stale_and_is_caught(assert_traced_once):
    x, decay = jnp.ones(2, jnp.float32), StaleDecay(0.5)
    guarded = assert_traced_once(decay.call, check_captures=True)
    assert guarded(x).tolist() == [0.5, 0.5]
    decay.rate = 0.25
    assert decay.call(x).tolist() == [0.5, 0.5]  # wrong: it should be 0.25, and nothing tells
    with pytest.raises(AssertionError, match=r"multiply keeps a stale value: self.rate \(0.5 when traced, 0.25 now\)"):
        guarded(x)
