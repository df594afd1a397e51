# case: a decorator that jits what it decorates, on each call or once
import functools

import jax


def on_each_call(function):
    @functools.wraps(function)
    def wrapper(*args):
        return jax.jit(function)(*args)  # expect: JIT107

    return wrapper


def once(function):
    jitted = jax.jit(function)

    @functools.wraps(function)
    def wrapper(*args):
        return jitted(*args)

    return wrapper


@on_each_call
def double(x):
    return x * 2


@once
def halve(x):
    return x / 2
