"""Programs that are right, and change or hold something all the same. Each gives the jitted function and what to run."""

from __future__ import annotations

import functools
import itertools
import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

X = jnp.ones(2)

Program = Callable[[], tuple[Any, Callable[[], None]]]
RIGHT: dict[str, Program] = {}


def right(program: Program) -> Program:
    RIGHT[program.__name__] = program
    return program


class Setter:
    """Jits again in the setter."""

    def __init__(self) -> None:
        self.gain = 1.0

    @property
    def gain(self) -> float:
        return self._gain

    @gain.setter
    def gain(self, value: float) -> None:
        self._gain = value
        self.step = jax.jit(lambda x: x * value)


@right
def jitted_again_by_the_setter():
    one = Setter()

    def run():
        one.step(X)
        one.gain = 3.0
        assert one.step(X)[0] == 3.0

    return one.step, run


@right
def cache_cleared_after_the_change():
    gain = 1.0

    @jax.jit
    def step(x):
        return x * gain

    def run():
        nonlocal gain
        step(X)
        gain = 2.0
        step.clear_cache()
        assert step(X)[0] == 2.0

    return step, run


@right
def cache_cleared_and_not_called_again():
    gain = 1.0

    @jax.jit
    def step(x):
        return x * gain

    def run():
        nonlocal gain
        step(X)
        gain = 2.0
        step.clear_cache()

    return step, run


@right
def all_caches_cleared():
    gain = 1.0

    @jax.jit
    def step(x):
        return x * gain

    def run():
        nonlocal gain
        step(X)
        gain = 2.0
        jax.clear_caches()
        assert step(X)[0] == 2.0

    return step, run


@right
def none_until_loaded():
    weights = None

    @jax.jit
    def step(x):
        return x * weights

    def run():
        nonlocal weights
        weights = jnp.ones(2) * 2
        assert step(X)[0] == 2.0
        step(X)

    return step, run


@right
def none_until_loaded_in_the_body():
    table = None

    def load():
        nonlocal table
        if table is None:
            table = np.array([1.0, 2.0])
        return table

    @jax.jit
    def step(x):
        return x * load()

    def run():
        step(X)
        step(X)

    return step, run


@right
def trace_counter():
    traces = 0

    @jax.jit
    def step(x):
        nonlocal traces
        traces += 1
        return x + 1

    def run():
        for _ in range(3):
            step(X)

    return step, run


@right
def trace_counter_in_a_dict():
    traces = {"step": 0}

    @jax.jit
    def step(x):
        traces["step"] += 1
        return x + 1

    def run():
        step(X)
        step(X)
        traces["step"] = 0

    return step, run


@right
def shapes_seen_in_a_list():
    seen = []

    @jax.jit
    def step(x):
        seen.append(x.shape)
        return x + 1

    def run():
        step(X)
        step(X)
        seen.clear()

    return step, run


@right
def memo_dict():
    memo = {}

    def table(n):
        if n not in memo:
            memo[n] = np.arange(n, dtype=np.float32)
        return memo[n]

    @jax.jit
    def step(x):
        return x + table(x.shape[0])

    def run():
        step(X)
        step(jnp.ones(3))
        step(X)

    return step, run


@right
def functools_cache_helper():
    @functools.cache
    def table(n):
        return np.arange(n, dtype=np.float32)

    @jax.jit
    def step(x):
        return x + table(x.shape[0])

    def run():
        step(X)
        step(X)

    return step, run


LOG = logging.getLogger(__name__)


@right
def logger():
    @jax.jit
    def step(x):
        LOG.debug("traced for %s", x.shape)
        return x + 1

    def run():
        step(X)
        LOG.setLevel(logging.ERROR)
        step(X)
        LOG.setLevel(logging.NOTSET)

    return step, run


class Owner:
    pass


@right
def weak_reference_that_dies():
    owner = Owner()
    ref = weakref.ref(owner)

    @jax.jit
    def step(x):
        ref()
        return x + 1

    def run():
        nonlocal owner
        step(X)
        del owner
        step(X)

    return step, run


@right
def jitted_function_that_a_jitted_function_captures():
    inner = jax.jit(lambda x: x * 2)

    @jax.jit
    def step(x):
        return inner(x) + 1

    def run():
        inner(X)
        step(X)
        step(X)

    return step, run


@dataclass(frozen=True)
class Config:
    rate: float = 0.1
    depth: int = 2


CONFIG = Config()


@right
def config_object_that_never_changes():
    @jax.jit
    def step(x):
        for _ in range(CONFIG.depth):
            x = x * CONFIG.rate
        return x

    def run():
        step(X)
        step(X)

    return step, run


@right
def another_equal_config_object():
    config = Config()

    @jax.jit
    def step(x):
        return x * config.rate

    def run():
        nonlocal config
        step(X)
        config = Config()
        step(X)

    return step, run


@right
def attribute_that_the_body_does_not_read():
    class Trainer:
        def __init__(self) -> None:
            self.gain = 2.0
            self.steps = 0
            self.step = jax.jit(self.forward)

        def forward(self, x):
            return x * self.gain

        def train(self, x):
            self.steps += 1
            return self.step(x)

    trainer = Trainer()

    def run():
        for _ in range(3):
            trainer.train(X)

    return trainer.step, run


@right
def value_that_does_not_reach_the_result():
    verbose = False

    @jax.jit
    def step(x):
        if verbose:
            print("traced")
        return x + 1

    def run():
        nonlocal verbose
        step(X)
        verbose = True
        step(X)

    return step, run


@right
def put_back_before_the_next_call():
    gain = 1.0

    @jax.jit
    def step(x):
        return x * gain

    def run():
        nonlocal gain
        step(X)
        gain = 2.0
        gain = 1.0
        step(X)

    return step, run


@right
def rebound_to_an_equal_array():
    w = jnp.arange(2.0)

    @jax.jit
    def step(x):
        return x * w

    def run():
        nonlocal w
        step(X)
        w = jnp.arange(2.0)
        step(X)

    return step, run


@right
def same_content_written_again():
    w = np.ones(2, np.float32)

    @jax.jit
    def step(x):
        return x * w

    def run():
        step(X)
        w[:] = 1.0
        step(X)

    return step, run


@right
def key_as_an_argument():
    @jax.jit
    def noise(x, key):
        return x + jax.random.normal(key)

    def run():
        key = jax.random.PRNGKey(0)
        for one in jax.random.split(key, 3):
            noise(X, one)

    return noise, run


@right
def key_split_with_a_constant_seed():
    @jax.jit
    def noise(x):
        key, one = jax.random.split(jax.random.PRNGKey(0))
        return x + jax.random.normal(one) + jax.random.normal(key)

    def run():
        noise(X)
        noise(X)

    return noise, run


@right
def the_time_is_only_printed():
    @jax.jit
    def step(x):
        time.perf_counter()
        return x + 1

    def run():
        step(X)
        step(X)

    return step, run


@right
def numbers_of_a_counter_are_names_only():
    names = itertools.count()

    @jax.jit
    def step(x):
        with jax.named_scope(f"step{next(names)}"):
            return x + 1

    def run():
        step(X)
        step(X)

    return step, run


@right
def custom_derivative():
    @jax.custom_vjp
    def clip(x):
        return x

    clip.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))

    @jax.jit
    def step(x):
        return jax.grad(lambda v: (clip(v) ** 2).sum())(x)

    def run():
        step(X)
        step(X)

    return step, run


@right
def callback_and_control_flow():
    def host(x):
        return np.asarray(x) * 2

    @jax.jit
    def step(x):
        y = jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        y = jax.lax.cond(y.sum() > 0, lambda v: v + 1, lambda v: v - 1, y)
        return jax.lax.scan(lambda c, v: (c + v, c), 0.0, y)[1]

    def run():
        step(X)
        step(X)

    return step, run


@right
def checkpointed_and_vmapped():
    @jax.checkpoint
    def body(x):
        return jnp.sin(x) * 2

    @jax.jit
    def step(x):
        return jax.vmap(jax.grad(body))(x)

    def run():
        step(X)
        step(X)

    return step, run


@right
def nan_and_negative_zero_as_constants():
    fill = float("nan")

    @jax.jit
    def step(x):
        return jnp.where(x > 0, fill, -0.0)

    def run():
        step(X)
        step(X)

    return step, run


@right
def donated_argument_and_deleted_constant():
    start = jnp.zeros(2)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(x):
        return x + start

    def run():
        x = step(jnp.ones(2))
        step(x)

    return step, run


@right
def static_arguments_by_value():
    @functools.partial(jax.jit, static_argnums=1, static_argnames="mode")
    def step(x, n, *, mode="a"):
        return x * n if mode == "a" else x + n

    def run():
        step(X, 2)
        step(X, 3, mode="b")
        step(X, (1 + 1), mode="a")

    return step, run


@right
def static_object_by_value():
    @functools.partial(jax.jit, static_argnames="config")
    def step(x, config):
        return x * config.rate

    def run():
        config = Config(rate=0.5)
        step(X, config=config)
        step(X, config=config)

    return step, run


@right
def pytree_argument_with_metadata():
    @functools.partial(jax.jit)
    def step(state):
        return {"x": state["x"] + 1, "n": state["n"]}

    def run():
        state = {"x": X, "n": None}
        for _ in range(3):
            state = step(state)

    return step, run


@right
def flax_linen_module():
    import flax.linen as nn

    class Net(nn.Module):
        width: int = 4

        @nn.compact
        def __call__(self, x):
            return nn.Dense(self.width)(nn.relu(nn.Dense(self.width)(x)))

    net = Net()
    params = net.init(jax.random.PRNGKey(0), X)

    @jax.jit
    def step(params, x):
        return net.apply(params, x)

    def run():
        step(params, X)
        step(params, X)

    return step, run


@right
def flax_nnx_module():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.dense = nnx.Linear(2, 4, rngs=rngs)

        def __call__(self, x):
            return self.dense(x)

    net = Net(nnx.Rngs(0))

    @nnx.jit
    def step(net, x):
        return net(x)

    def run():
        step(net, X)
        step(net, X)

    return step, run


@right
def equinox_module():
    import equinox as eqx

    net = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.PRNGKey(0))

    @eqx.filter_jit
    def step(net, x):
        return net(x)

    def run():
        step(net, X)
        step(net, X)

    return step, run


@right
def optax_transformation():
    import optax

    tx = optax.adam(1e-3)

    @jax.jit
    def step(state, grads):
        return tx.update(grads, state)

    def run():
        state = tx.init(X)
        for _ in range(2):
            _, state = step(state, X)

    return step, run


@right
def flax_linen_lifted_jit_with_a_counter():
    import flax.linen as nn

    traces = 0

    class Net(nn.Module):
        key: int

        def __call__(self, x):
            nonlocal traces
            traces += 1
            return x * self.key

    lifted = nn.jit(Net)

    def run():
        for key in (1, 1, 2, 2):
            lifted(key).apply({}, X)

    return None, run
