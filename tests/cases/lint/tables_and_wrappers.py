# case: a table of lambdas indexed by a key, a decorator that jits what it decorates, attributes of known classes
import functools

import jax
import jax.numpy as jnp


def reduce_by(kind, x):
    table = {"sum": lambda v: jnp.sum(v), "max": lambda v: jnp.max(v)}
    return jax.jit(table[kind])(x)  # expect: JIT101


REDUCE = {"sum": jnp.sum, "max": jnp.max}


def reduce_known(kind, x):
    return jax.jit(REDUCE[kind])(x)  # expect: JIT107


def compiled(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return jax.jit(fn)(*args)  # expect: JIT107

    return wrapper


class Field:
    def potential(self, x):
        return x**2


class Probe:
    def __init__(self, field: Field):
        self.field = field

    def measure(self, x):
        return jax.jit(self.field.potential)(x)  # expect: JIT104


def read_off(field: Field, x):
    return jax.jit(field.potential)(x)  # expect: JIT104


class Unknown:
    def __init__(self, field):
        self.field = field

    def measure(self, x):
        return jax.jit(self.field.potential)(x)
