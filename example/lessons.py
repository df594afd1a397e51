"""Four lessons about a jitted function's cache: each in a few lines, each with a test in test_lessons.py."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

# 1. A factory is fine as long as its product is kept. `make_power(3)(x)` on each call would trace on each call.


def make_power(exponent: int) -> Callable[[jax.Array], jax.Array]:
    """Return a jitted function that raises f32[n] to ``exponent``. Keep it: its cache lives as long as it does."""

    @jax.jit
    def power(x: jax.Array) -> jax.Array:
        return x**exponent

    return power


cube = make_power(3)


# 2. What changes is an argument. A captured value is read once, when JAX traces: a warm call would keep the old one.


@jax.jit
def scaled(x: jax.Array, scale: float) -> jax.Array:
    """Return ``scale * x``, f32[n]. Another ``scale`` needs no other trace."""
    return scale * x


# 3. A static argument only where Python's own control flow needs the value: each value is a trace of its own.


@partial(jax.jit, static_argnames="order")
def norm(x: jax.Array, order: int) -> jax.Array:
    """Return the 1-norm or 2-norm of ``x``: f32[n] -> f32[].

    Raises ValueError for any other ``order``.
    """
    if order == 1:
        return jnp.sum(jnp.abs(x))
    if order == 2:
        return jnp.sqrt(jnp.sum(x**2))
    raise ValueError(f"order is {order!r}, allowed are 1 and 2")


# 4. A stale value: `self.rate` would be read once, when JAX traces, and set in vain after that. So it is an argument.


class Decay:
    """Multiplies by a rate that may be set at any time."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return ``rate * x``, f32[n], for the rate of now."""
        return scaled(x, self.rate)
