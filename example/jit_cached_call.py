"""The sum of squares, jitted once: JAX traces and compiles it once for each length of the input."""

import jax
import jax.numpy as jnp


@jax.jit
def _sum_of_squares(x: jax.Array) -> jax.Array:
    return jnp.sum(x**2)


def jit_cached_call(x: jax.Array) -> jax.Array:
    """Return the sum of the squares of ``x``.

    x: f32[n], for any n; an empty ``x`` gives 0. The result is a JAX array, f32[].

    The jitted function lives at module level, so its cache lives as long as the program. Written inside this
    function, ``jax.jit(lambda x: jnp.sum(x**2))(x)`` would be traced and compiled anew on each call.
    """
    return _sum_of_squares(x)
