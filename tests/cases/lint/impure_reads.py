# case: random numbers, the time, iterators and the environment, read when the function is traced
import itertools
import os
import random
import time
from datetime import datetime

import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)
SEEDS = itertools.count()


@jax.jit  # expect: JIT205
def dropout(x):
    mask = np.random.rand(4) > 0.5
    return jnp.where(mask, x, 0.0)


@jax.jit  # expect: JIT205
def jitter(x):
    return x + RNG.normal(size=3)


@jax.jit  # expect: JIT205
def stamped(x):
    return x * time.time()


@jax.jit  # expect: JIT205
def keyed(x):
    key = jax.random.key(next(SEEDS))
    return x + jax.random.normal(key, x.shape)


def _pick():
    return random.choice([1.0, 2.0])


@jax.jit  # expect: JIT205
def scaled(x):
    return x * _pick()


@jax.jit  # expect: JIT205
def configured(x):
    return x * float(os.environ["SCALE"])


@jax.jit  # expect: JIT205
def dated(x):
    return x * datetime.now().hour


@jax.jit
def timed(x):
    began = time.perf_counter()
    y = x * 2
    print("traced in", time.perf_counter() - began)
    return y


@jax.jit
def seeded(x):
    rng = np.random.default_rng(0)
    return x + rng.normal(size=3)


@jax.jit
def with_key(x, key):
    return x + jax.random.normal(key, x.shape)


def outside(x):
    return dropout(x) * np.random.rand()
