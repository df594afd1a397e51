"""The example's functions, each with a fault that the example avoids."""

import jax
import jax.numpy as jnp

# Traced and compiled on each call: a lambda, a nested function and a factory's product, each made anew.


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


# Traced twice: `total` is a Python float at first, and then an array.


@jax.jit
def add(total, x):
    return total + jnp.sum(x**2)


def running_sum(arrays):
    total = 0.0
    for x in arrays:
        total = add(total, x)
    return total


# Traced once, and wrong from then on: what the trace has read stays as it was.

gain = 1.0


@jax.jit
def amplified(x):
    return gain * x


def set_gain(value):
    global gain
    gain = value
