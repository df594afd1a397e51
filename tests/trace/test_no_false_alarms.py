"""Situations that do not retrace, or that retrace by right: the guard passes, and counts what happened."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import operator
import threading
from collections import namedtuple
from datetime import date
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pytest_jitcache import RetraceError, traced_once

X = jnp.ones(3)


def since(*version):
    return pytest.mark.skipif(jax.__version_info__ < version, reason=f"JAX {'.'.join(map(str, version))} or later")


def loss(w, x):
    return jnp.sum((w - x) ** 2)


def double(x):
    return 2 * x


@jax.jit
def step(w, rate, bias=0.0):
    return w - rate * w + bias


@partial(jax.jit, static_argnames=("mode", "fn"))
def apply(x, mode=None, fn=None):
    return x if fn is None else fn(x)


def count(run, *functions, **options):
    with traced_once(*functions, **options) as traces:
        run()
    return len(traces)


def test_module_level_function_wrapped_each_time():
    assert count(lambda: [jax.jit(double)(X) for _ in range(3)]) == 1


def test_three_kept_products_of_one_factory():
    def make(k):
        return jax.jit(lambda v: v * k)

    def run():
        kept = [make(k) for k in range(3)]
        for _ in range(2):
            for f in kept:
                f(X)

    assert count(run) == 3


def test_kept_products_are_apart_under_total_too():
    def make(k):
        return jax.jit(lambda v: v * k)

    def run():
        kept = [make(k) for k in range(3)]
        for f in kept:
            f(X)

    assert count(run, per="total") == 3


def test_kept_partials():
    def run():
        kept = [jax.jit(partial(loss, float(k))) for k in range(3)]
        for f in kept:
            f(X)

    assert count(run) == 3


def test_two_instances_with_a_static_self():
    class Model:
        def __init__(self, k):
            self.k = k

        @partial(jax.jit, static_argnums=0)
        def forward(self, x):
            return self.k * x

    def run():
        a, b = Model(1.0), Model(2.0)
        for _ in range(2):
            a.forward(X)
            b.forward(X)

    assert count(run, Model.forward) == 2


def test_instances_in_a_list_with_a_nested_static_self():
    class Model:
        @partial(jax.jit, static_argnums=0)
        def forward(self, x):
            return self.inner(x)

        @partial(jax.jit, static_argnums=0)
        def inner(self, x):
            return x * 2

    def run():
        models = [Model() for _ in range(4)]
        for _ in range(2):
            for model in models:
                model.forward(X)

    assert count(run, Model.forward) == 4


def test_stable_static_functions():
    def run():
        for _ in range(2):
            apply(X, fn=jnp.sin)
            apply(X, fn=jnp.cos)
            apply(X, fn=double)

    assert count(run, apply) == 3


def test_many_kept_static_closures_and_one_that_is_made_anew_after_them():
    kept = [lambda v, k=k: v * k for k in range(12)]

    def run():
        for f in kept:
            apply(X, fn=f)
        for _ in range(2):
            apply(X, fn=lambda v, k=0: v - k)

    assert count(run, apply, max_traces=2) == 14
    with pytest.raises(RetraceError, match=r"traced 2x, allowed 1: static argument made anew \(fn\)"):
        count(run, apply)


def test_kept_static_closures():
    def make(k):
        return lambda v: v * k

    def run():
        f, g = make(1.0), make(2.0)
        for _ in range(2):
            apply(X, fn=f)
            apply(X, fn=g)

    assert count(run, apply) == 2


def test_bound_method_of_one_instance_as_static():
    class Act:
        def relu(self, x):
            return jnp.maximum(x, 0)

    act = Act()
    assert count(lambda: [apply(X, fn=act.relu) for _ in range(3)], apply) == 1


def test_equal_frozen_dataclass_as_static():
    @dataclasses.dataclass(frozen=True)
    class Config:
        depth: int = 2
        name: str = "a"

    assert count(lambda: [apply(X, mode=Config()) for _ in range(3)], apply) == 1


@pytest.mark.parametrize(
    "values",
    [
        (np.int64(1), np.int64(2)), (np.float32(1), np.float32(2)), (np.True_, np.False_), (-1, -2),
        (np.int8(-1), np.int8(-2)), (Fraction(-1), Fraction(-2)), (range(3), range(4)), (np.dtype("f4"), np.dtype("f2")),
        (date(2026, 1, 1), date(2026, 1, 2)), (jnp.float32, jnp.float16),
    ],
    ids=repr,
)  # fmt: skip
def test_static_values_of_other_types(values):
    assert count(lambda: [apply(X, mode=value) for value in values * 2], apply) == 2


def test_static_and_pytree_types_of_kept_classes():
    def config(n):
        @dataclasses.dataclass(frozen=True)
        class Config:
            depth: int = n

        return Config

    kept = [config(n) for n in range(3)]
    assert count(lambda: [apply(X, mode=one) for one in kept * 2], apply) == 3
    assert count(lambda: [apply(X, mode=one()) for one in kept * 2], apply) == 3
    batches = [namedtuple("Batch", "x y") for _ in range(3)]
    assert count(lambda: [apply(one(X, X)) for one in batches * 2], apply) == 3


def test_one_class_of_a_function():
    class Mode(enum.Enum):
        TRAIN = 1
        EVAL = 2

    Batch = namedtuple("Batch", "x")
    assert count(lambda: [apply(Batch(X), mode=mode) for mode in [*Mode] * 3], apply) == 2


@since(0, 9)
def test_static_values_of_one_hash_are_apart():
    assert count(lambda: [apply(X, mode=m) for m in (1, 1.0, True)], apply) == 3


def test_jit_of_checkpoint_does_not_retrace():
    def body(x):
        return x + 1

    assert count(lambda: [jax.jit(jax.checkpoint(body))(X) for _ in range(3)]) == 1


def test_jit_of_jit_does_not_retrace():
    def body(x):
        return x + 1

    assert count(lambda: [jax.jit(jax.jit(body))(X) for _ in range(3)]) == 1


def test_jit_of_vmap_of_a_stable_jit_does_not_retrace_the_inner_one():
    inner = jax.jit(double)
    assert count(lambda: [jax.jit(jax.vmap(inner))(X) for _ in range(3)], inner) == 1


def test_hoisted_jit_and_jit_of_grad_of_one_function():
    def run():
        value, slope = jax.jit(loss), jax.jit(jax.grad(loss))
        for _ in range(3):
            value(X, X)
            slope(X, X)

    assert count(run) == 2


@since(0, 5)
def test_two_outer_functions_inline_one_plain_function():
    @jax.jit
    def train(x):
        return double(x) + 1

    @jax.jit
    def evaluate(x):
        return double(x) - 1

    def run():
        for _ in range(2):
            train(X)
            evaluate(X)

    assert count(run, double) == 2


@pytest.mark.parametrize("named", [False, True], ids=["block", "plain function"])
def test_local_bodies_inside_a_function_that_is_traced_for_two_shapes(named):
    @jax.jit
    def total(xs):
        def add(c, x):
            return jax.jit(lambda v: v + c)(x), None

        return lax.scan(add, jnp.float32(0), xs)[0]

    def epoch():
        for n in (3, 4, 3, 4):
            total(jnp.ones(n))

    count(epoch, *([epoch] if named else []))


@since(0, 5)
def test_plain_function_used_three_times_in_one_trace():
    @jax.jit
    def forward(x):
        for _ in range(3):
            x = double(x)
        return x

    assert count(lambda: [forward(X) for _ in range(2)], double) == 1


@pytest.mark.parametrize("carry", [0.0, jnp.float32(0)], ids=["weak", "strong"])
def test_scan_promotes_a_weak_carry_within_one_call(carry):
    def body(c, x):
        return c + x, None

    assert count(lambda: [lax.scan(body, carry, X) for _ in range(2)]) >= 1


def test_while_loop_promotes_a_weak_carry_within_one_call():
    def unfinished(c):
        return c[0] < 3

    def advance(c):
        return c[0] + jnp.float32(1), c[1] * 1

    assert count(lambda: [lax.while_loop(unfinished, advance, (0.0, 1)) for _ in range(2)]) >= 1


def test_scan_over_a_kept_closure():
    gain = 2.0

    def body(c, x):
        return c + gain * x, None

    assert count(lambda: [lax.scan(body, jnp.float32(0), X) for _ in range(3)]) == 1


def test_cond_with_module_level_branches():
    assert count(lambda: [lax.cond(True, double, jnp.negative, X) for _ in range(3)]) == 1


def test_keyword_order():
    assert count(lambda: (step(w=X, rate=0.1), step(rate=0.1, w=X)), step) == 1


def test_unequal_default_is_another_signature():
    assert count(lambda: (step(X, 0.1), step(X, 0.1, 2.0)), step) == 2


def test_empty_and_none():
    @jax.jit
    def forward(x, mask=None):
        return x

    assert count(lambda: [forward(X, None) for _ in range(3)], forward) == 1


@since(0, 4, 36)
def test_named_tuple_and_dataclass_state():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        w: jax.Array
        n: jax.Array

    @jax.jit
    def forward(s):
        return State(s.w + 1, s.n + 1)

    def run():
        s = State(X, jnp.int32(0))
        for _ in range(3):
            s = forward(s)

    assert count(run, forward) == 1


def test_alternating_structures():
    point = namedtuple("Point", "x y")

    @jax.jit
    def forward(p):
        return p[0] + p[1]

    def run():
        for _ in range(2):
            forward(point(X, X))
            forward((X, X))
            forward([X, X])

    assert count(run, forward) == 3


def test_python_scalars_of_other_values():
    assert count(lambda: [step(X, r) for r in (0.1, 0.2, 0.3)], step) == 1


def test_prng_keys():
    @jax.jit
    def draw(key):
        return jax.random.normal(key)

    def run():
        key = jax.random.key(0)
        for _ in range(3):
            key, sub = jax.random.split(key)
            draw(sub)

    assert count(run, draw) == 1


def test_log_compiles_and_debug_nans_do_not_matter():
    def run():
        step(X, 0.1)
        with jax.log_compiles(False), jax.debug_nans(False):
            step(X, 0.1)

    assert count(run, step) == 1


def test_donation():
    @partial(jax.jit, donate_argnums=0)
    def evolve(state):
        return state + 1

    def run():
        state = jnp.zeros(3)
        for _ in range(3):
            state = evolve(state)

    assert count(run, evolve) == 1


def test_cached_factory():
    @functools.lru_cache
    def make(k):
        return jax.jit(lambda v: v * k)

    assert count(lambda: [make(2.0)(X) for _ in range(3)]) == 1


def test_threads_with_one_function():
    def work():
        step(X, 0.1)

    def run():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    assert count(run, step) == 1


def test_outer_guard_is_not_charged_for_the_inner_ones_clearing():
    with traced_once(step) as outer:
        step(X, 0.1)
        with traced_once(step) as inner:
            step(X, 0.1)
        step(X, 0.1)
    assert len(outer) == 2
    assert len(inner) == 1


def test_overlapping_guards():
    first, second = traced_once(step), traced_once(step)
    first.__enter__()
    step(X, 0.1)
    second.__enter__()
    step(X, 0.1)
    first.__exit__(None, None, None)
    step(X, 0.1)
    second.__exit__(None, None, None)


def test_a_trace_that_raised_under_grad_does_not_count():
    ready = []

    @jax.jit
    def load(x):
        if not ready:
            raise OSError("not yet")
        return jnp.sum(x)

    def run():
        with pytest.raises(OSError, match="not yet"):
            jax.grad(load)(X)
        ready.append(1)
        jax.grad(load)(X)

    assert count(run, load) == 1


def test_a_trace_that_raised_inside_another_trace():
    @jax.jit
    def bad(x):
        raise OSError("never")

    @jax.jit
    def outer(x):
        with contextlib.suppress(OSError):
            bad(x)
        return x

    def run():
        outer(X)
        outer(X)

    assert count(run) == 1


def test_aot_compiled_function():
    def run():
        compiled = step.lower(X, 0.1).compile()
        for _ in range(3):
            compiled(X, 0.1)

    assert count(run, step) == 1


def test_numpy_shapes_alternate():
    def run():
        for n in (3, 4, 3, 4):
            step(np.ones(n, np.float32), 0.1)

    assert count(run, step) == 2


def test_per_device_function():
    f = jax.pmap(double)
    assert count(lambda: [f(X[None]) for _ in range(3)], f) == 1


def test_max_traces_allows_kinds():
    assert count(lambda: (step(X, 0.1), step(X, jnp.float32(0.1))), step, max_traces=2) == 2


def test_vmap_of_one_jitted_function_over_sizes():
    def run():
        for n in (2, 3, 2, 3):
            jax.vmap(step, in_axes=(0, None))(jnp.ones((n, 3)), 0.1)

    assert count(run, step) == 1


def test_nested_jit_keeps_its_trace_across_outer_shapes():
    @jax.jit
    def outer(x):
        return step(x[:2], 0.1)

    def run():
        for n in (3, 4, 5):
            outer(jnp.ones(n))

    assert count(run, step) == 1


def test_custom_vjp_in_a_kept_gradient():
    @jax.custom_vjp
    def f(x):
        return jnp.sum(x)

    f.defvjp(lambda x: (jnp.sum(x), None), lambda _, g: (g * jnp.ones(3),))
    slope = jax.jit(jax.grad(f))
    assert count(lambda: [slope(X) for _ in range(3)], slope) == 1


def test_one_function_for_several_purposes():
    """Each of JAX's caches holds it once."""
    jitted, mapped = jax.jit(double), jax.pmap(double)

    def run():
        for _ in range(3):
            jitted(X)
            mapped(X[None])
            jax.checkpoint(double)(X)
            lax.cond(X[0] > 0, double, double, X)
            lax.switch(1, [double, double, jnp.negative], X)

    count(run, run)


def test_functions_of_jax_that_are_named():
    kept = [jax.jit(f) for f in (jax.nn.softmax, partial(jnp.sum, axis=0), jax.vmap(jnp.dot, (0, None)), operator.neg)]

    def run():
        for _ in range(3):
            for f in kept:
                f(X[None], X) if f is kept[2] else f(X)

    assert count(run, *kept) == 4
