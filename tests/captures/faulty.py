"""Programs that give a wrong number because a warm call keeps what was captured, each with the change that mends it.

A program is what `run` does: given the function, it returns the number that a warm call gives and the number that would be right.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

X = jnp.ones(2)

Program = Callable[[], tuple[Any, Callable[[Any], tuple[float, float]]]]
FAULTY: dict[str, tuple[str, str, Program]] = {}


def faulty(first: str, fix: str) -> Callable[[Program], Program]:
    """A program with the first line and the remedy that are right for it. It gives the jitted function and what to run."""

    def add(program: Program) -> Program:
        FAULTY[program.__name__] = (first, fix, program)
        return program

    return add


SCALE = 1.0


@faulty("step keeps a stale value: SCALE (1.0 when traced, 2.0 now)", "Pass `SCALE` to `step` as an argument.")
def global_number():
    global SCALE
    SCALE = 1.0

    @jax.jit
    def step(x):
        return x * SCALE

    def run(step):
        global SCALE
        step(X)
        SCALE = 2.0
        return float(step(X)[0]), 2.0

    return step, run


@faulty("step keeps a stale value: SCALE (1.0 when traced, 3.0 now)", "Pass `SCALE` to `step` as an argument.")
def global_read_by_a_helper():
    global SCALE
    SCALE = 1.0

    def scaled(x):
        return x * SCALE

    @jax.jit
    def step(x):
        return scaled(x) + 0.0

    def run(step):
        global SCALE
        step(X)
        SCALE = 3.0
        return float(step(X)[0]), 3.0

    return step, run


@faulty("step keeps a stale value: gain (1.0 when traced, 2.0 now)", "Pass `gain` to `step` as an argument.")
def local_of_an_enclosing_function():
    gain = 1.0

    @jax.jit
    def step(x):
        return x * gain

    def run(step):
        nonlocal gain
        step(X)
        gain = 2.0
        return float(step(X)[0]), 2.0

    return step, run


class Model:
    def __init__(self) -> None:
        self.gain = 1.0
        self.step = jax.jit(self.forward)

    def forward(self, x):
        return x * self.gain


@faulty(
    "forward keeps a stale value: self.gain (1.0 when traced, 2.0 now)",
    "Pass `self.gain` to `forward` as an argument of its own, or make the class of `self` a pytree and pass it as an "
    "argument that is not static.",
)
def attribute_of_a_bound_self():
    model = Model()

    def run(step):
        step(X)
        model.gain = 2.0
        return float(step(X)[0]), 2.0

    return model.step, run


class Static:
    def __init__(self) -> None:
        self.gain = 1.0

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, x):
        return x * self.gain


@faulty(
    "step keeps a stale value: self.gain (1.0 when traced, 2.0 now)",
    "Pass `self.gain` to `step` as an argument of its own, or make the class of `self` a pytree and pass it as an "
    "argument that is not static.",
)
def attribute_of_a_static_self():
    one = Static()

    def run(step):
        step(one, X)
        one.gain = 2.0
        return float(step(one, X)[0]), 2.0

    return Static.step, run


@faulty(
    "step keeps a stale value: config.rates[0] (1.0 when traced, 2.0 now)",
    "Pass `config.rates[0]` to `step` as an argument of its own, or make the class of `config` a pytree and pass it as an "
    "argument that is not static.",
)
def item_of_a_static_object():
    class Config:
        def __init__(self) -> None:
            self.rates = [1.0]

    config = Config()

    @functools.partial(jax.jit, static_argnames="config")
    def step(x, config):
        return x * config.rates[0]

    def run(step):
        step(X, config=config)
        config.rates[0] = 2.0
        return float(step(X, config=config)[0]), 2.0

    return step, run


@faulty(
    "step keeps a stale value: options['gain'] (1.0 when traced, 2.0 now)",
    "Leave `options['gain']` out of the partial, and pass it in each call.",
)
def content_of_a_partial_argument():
    options = {"gain": 1.0}

    def step(x, options):
        return x * options["gain"]

    jitted = jax.jit(functools.partial(step, options=options))

    def run(step):
        step(X)
        options["gain"] = 2.0
        return float(step(X)[0]), 2.0

    return jitted, run


@faulty(
    "step keeps a stale value: rates[0] (1.0 when traced, 2.0 now)",
    "Pass `rates[0]` in each call; a default is read once.",
)
def content_of_a_default():
    @jax.jit
    def step(x, rates=[1.0]):  # noqa: B006
        return x * rates[0]

    rates = step.__wrapped__.__defaults__[0]

    def run(step):
        step(X)
        rates[0] = 2.0
        return float(step(X)[0]), 2.0

    return step, run


@faulty(
    "step keeps a stale value: TERMS ([1.0] when traced, [1.0, 2.0] now)",
    "Pass `TERMS` to `step` as an argument.",
)
def list_that_grows():
    TERMS = [1.0]

    @jax.jit
    def step(x):
        return x * sum(TERMS)

    def run(step):
        step(X)
        TERMS.append(2.0)
        return float(step(X)[0]), 3.0

    return step, run


@faulty(
    "step keeps a stale value: table['b'] (2.0 when traced, 5.0 now)",
    "Pass `table['b']` to `step` as an argument.",
)
def item_of_a_dict():
    table = {"a": 1.0, "b": 2.0}

    @jax.jit
    def step(x):
        return x * table["b"]

    def run(step):
        step(X)
        table["b"] = 5.0
        return float(step(X)[0]), 5.0

    return step, run


@faulty(
    "step keeps a stale value: flags ({'a'} when traced, {'a', 'double'} now)",
    "Pass `flags` to `step` as an argument, a static one (`static_argnames`), as a frozenset.",
)
def set_that_decides():
    flags = {"a"}

    @jax.jit
    def step(x):
        return x * 2 if "double" in flags else x + 0

    def run(step):
        step(X)
        flags.add("double")
        return float(step(X)[0]), 2.0

    return step, run


@faulty("step keeps a stale value: w ([1.0, 2.0] when traced, [9.0, 2.0] now)", "Pass `w` to `step` as an argument.")
def numpy_array_written_to():
    w = np.array([1.0, 2.0])

    @jax.jit
    def step(x):
        return x * w

    def run(step):
        step(X)
        w[0] = 9.0
        return float(step(X)[0]), 9.0

    return step, run


@faulty("step keeps a stale value: w (f32[2], another one now)", "Pass `w` to `step` as an argument.")
def jax_array_rebound():
    w = jnp.ones(2)

    @jax.jit
    def step(x):
        return x * w

    def run(step):
        nonlocal w
        step(X)
        w = w * 4
        return float(step(X)[0]), 4.0

    return step, run


@faulty(
    "step keeps a stale value: mode ('sum' when traced, 'mean' now)",
    "Pass `mode` to `step` as an argument, a static one (`static_argnames`).",
)
def string_that_decides():
    mode = "sum"

    @jax.jit
    def step(x):
        return x.sum() if mode == "sum" else x.mean()

    def run(step):
        nonlocal mode
        step(X)
        mode = "mean"
        return float(step(X)), 1.0

    return step, run


@faulty(
    "step keeps a stale value: n (2 when traced, 3 now)",
    "Pass `n` to `step` as an argument, a static one (`static_argnames`).",
)
def number_that_decides_a_shape():
    n = 2

    @jax.jit
    def step(x):
        return jnp.zeros(n).size + x

    def run(step):
        nonlocal n
        step(X)
        n = 3
        return float(step(X)[0]), 4.0

    return step, run


@faulty(
    "step keeps a stale value: count (0 when traced, 1 now)",
    "Pass `count` to `step` as an argument, and return its new value for the next call.",
)
def counter_that_the_body_advances():
    count = 0

    @jax.jit
    def step(x):
        nonlocal count
        count += 1
        return x + count

    def run(step):
        step(X)
        return float(step(X)[0]), 3.0

    return step, run


@faulty(
    "noise keeps a stale value: key (u32[2], another one now)",
    "Pass `key` to `noise` as an argument, and return its new value for the next call.",
)
def key_that_the_body_splits():
    key = jax.random.PRNGKey(0)

    @jax.jit
    def noise(x):
        nonlocal key
        with jax.ensure_compile_time_eval():
            key, one = jax.random.split(key)
        return x + jax.random.normal(one)

    def run(step):
        a, b = float(step(X)[0]), float(step(X)[0])
        return b, a + 1.0 if a == b else b

    return noise, run


@faulty("noise gives another program each time it is traced", "Draw the numbers with `jax.random` from a key")
def random_numbers():
    @jax.jit
    def noise(x):
        return x + np.random.normal()

    def run(step):
        a, b = float(step(X)[0]), float(step(X)[0])
        return b, a + 1.0 if a == b else b

    return noise, run


@faulty("noise gives another program each time it is traced", "Draw the numbers with `jax.random` from a key")
def random_of_python():
    @jax.jit
    def noise(x):
        return x + random.random()

    def run(step):
        a, b = float(step(X)[0]), float(step(X)[0])
        return b, a + 1.0 if a == b else b

    return noise, run


@faulty("stamped gives another program each time it is traced", "Read the clock outside, and pass the time")
def the_time():
    @jax.jit
    def stamped(x):
        return x + time.perf_counter_ns() % 1_000_000 / 1e6

    def run(step):
        a, b = float(step(X)[0]), float(step(X)[0])
        return b, a + 1.0 if a == b else b

    return stamped, run


@faulty("step gives another program each time it is traced", "Take the next item outside, and pass it")
def an_iterator():
    items = iter(range(100))

    @jax.jit
    def step(x):
        return x + next(items)

    def run(step):
        step(X)
        return float(step(X)[0]), 2.0

    return step, run


@faulty(
    "step keeps a stale value: loss (function_rebound.double when traced, function_rebound.triple now)",
    "Pass `loss` to `step` as an argument, a static one (`static_argnames`).",
)
def function_rebound():
    def double(x):
        return x * 2

    def triple(x):
        return x * 3

    loss = double

    @jax.jit
    def step(x):
        return loss(x)

    def run(step):
        nonlocal loss
        step(X)
        loss = triple
        return float(step(X)[0]), 3.0

    return step, run


@dataclass
class Settings:
    gain: float = 1.0


SETTINGS = Settings()


@faulty(
    "step keeps a stale value: SETTINGS.gain (1.0 when traced, 2.0 now)",
    "Pass `SETTINGS.gain` to `step` as an argument.",
)
def attribute_of_a_global_object():
    SETTINGS.gain = 1.0

    @jax.jit
    def step(x):
        return x * SETTINGS.gain

    def run(step):
        step(X)
        SETTINGS.gain = 2.0
        return float(step(X)[0]), 2.0

    return step, run


@faulty("step keeps a stale value: w (f32[2] when traced, f32[3] now)", "Pass `w` to `step` as an argument.")
def array_of_another_shape():
    w = jnp.ones(2)

    @jax.jit
    def step(x):
        return x * w

    def run(step):
        nonlocal w
        step(X)
        w = jnp.ones(3)  # traced now, it would raise
        return float(step(X)[0]), float("nan")

    return step, run
