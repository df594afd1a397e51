"""The example's functions, each with the fault that the example avoids. Each returns the right number."""

import jax
import jax.numpy as jnp


def jit_fresh_call(x):
    return jax.jit(lambda v: jnp.sum(v**2))(x)


def scaled(x, scale):
    @jax.jit
    def times_scale(v):
        return scale * v

    return times_scale(x)


def make_power(exponent):
    return jax.jit(lambda v: v**exponent)


def cubed(x):
    return make_power(3)(x)


@jax.jit
def add(total, x):
    return total + jnp.sum(x**2)


def running_sum(arrays):
    total = 0.0
    for x in arrays:
        total = add(total, x)
    return total
