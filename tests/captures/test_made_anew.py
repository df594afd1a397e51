"""What is made anew and holds other values: the failure names them, and no remedy makes the program wrong.

Each faulty program is mended as its text says, and then gives the same numbers and passes.
"""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import pytest

from pytest_jitcache import RetraceError, traced_once

X = jnp.ones(2)
KEEPING = re.compile(r"keep|module level|__init__|factory|hoist|cache\b.*it", re.IGNORECASE)


def failure(run, *functions) -> tuple[str, list[float]]:
    numbers: list[float] = []
    with pytest.raises(RetraceError) as caught, traced_once(*functions):
        numbers += run()
    return " ".join(str(caught.value).split()), numbers


def first(value) -> float:
    return float(jnp.ravel(value)[0])


@functools.partial(jax.jit, static_argnums=0)
def apply(fn, x):
    return fn(x)


@jax.jit
def apply_mended(k, x):
    return x + k


def test_static_lambda():
    text, numbers = failure(lambda: [first(apply(lambda v, k=k: v + k, X)) for k in (1.0, 2.0)], apply)
    assert "What it captures differs: k was 1.0, is 2.0." in text
    assert "fix: Pass `k` to `apply` as an argument of its own" in text
    assert not KEEPING.search(text.partition("fix: ")[2])
    assert "holds the same" not in text
    with traced_once(apply_mended):
        assert [first(apply_mended(k, X)) for k in (1.0, 2.0)] == numbers == [2.0, 3.0]


def scaled(k, x):
    return jax.jit(lambda v: v * k)(x)


@jax.jit
def scaled_mended(v, k):
    return v * k


def test_lambda_that_captures_a_local():
    text, numbers = failure(lambda: [first(scaled(k, X)) for k in (1.0, 2.0)])
    assert "What it captures differs: k was 1.0, is 2.0." in text
    assert "fix: Let the lambda take `k` as an argument, and pass it in each call" in text
    assert not KEEPING.search(text.partition("fix: ")[2])
    with traced_once():
        assert [first(scaled_mended(X, k)) for k in (1.0, 2.0)] == numbers == [1.0, 2.0]


def test_lambda_that_captures_an_array():
    def times(w, x):
        return jax.jit(lambda v: v * w)(x)

    text, _ = failure(lambda: [first(times(jnp.full(2, k), X)) for k in (1.0, 2.0)])
    assert "What it captures differs: another w." in text
    assert "fix: Let the lambda take `w` as an argument, and pass it in each call" in text


def test_lambda_that_reads_a_global_that_changes(monkeypatch):
    def run():
        numbers = []
        for rate in (1.0, 2.0):
            monkeypatch.setitem(globals(), "RATE", rate)
            numbers.append(first(jax.jit(lambda v: v * RATE)(X)))
        return numbers

    text, numbers = failure(run)
    assert numbers == [1.0, 2.0]
    assert "RATE was 1.0, is 2.0" in text
    assert "take `RATE` as an argument" in text


RATE = 0.0


class Model:
    def __init__(self) -> None:
        self.gain = 1.0

    def forward(self, x):
        return x * self.gain

    def predict(self, x):
        return jax.jit(self.forward)(x)


def test_method_of_an_object_whose_attribute_changes():
    def run():
        model = Model()
        numbers = []
        for gain in (1.0, 2.0):
            model.gain = gain
            numbers.append(first(model.predict(X)))
        return numbers

    text, numbers = failure(run)
    assert "self.gain was 1.0, is 2.0." in text
    assert "fix: Let `forward` take `self.gain` as an argument" in text
    assert not KEEPING.search(text.partition("fix: ")[2])
    assert numbers == [1.0, 2.0]


class Options:
    def __init__(self, k: float) -> None:
        self.k = k


@functools.partial(jax.jit, static_argnums=0)
def use(options, x):
    return x * options.k


@jax.jit
def use_mended(k, x):
    return x * k


def test_static_object_with_another_value():
    text, numbers = failure(lambda: [first(use(Options(k), X)) for k in (1.0, 2.0)], use)
    assert "options.k was 1.0, is 2.0." in text
    assert "fix: Pass `options.k` to `use` as an argument of its own" in text
    assert not KEEPING.search(text.partition("fix: ")[2])
    with traced_once(use_mended):
        assert [first(use_mended(Options(k).k, X)) for k in (1.0, 2.0)] == numbers


def test_partial_with_another_value():
    def times(k, x):
        return x * k

    text, numbers = failure(lambda: [first(jax.jit(functools.partial(times, k))(X)) for k in (1.0, 2.0)])
    assert "k was 1.0, is 2.0." in text
    assert "fix: Let `times` take `k` as an argument, and pass it in each call" in text
    mended = jax.jit(times)
    with traced_once(mended):
        assert [first(mended(k, X)) for k in (1.0, 2.0)] == numbers


def test_mode_that_differs_is_passed_as_a_static_argument():
    def run(mode):
        return first(jax.jit(lambda v: v * 2 if mode == "double" else v)(X))

    text, numbers = failure(lambda: [run("double"), run("same")])
    assert "take `mode` as an argument, a static one (`static_argnames`)" in text
    mended = jax.jit(lambda v, mode: v * 2 if mode == "double" else v, static_argnames="mode")
    with traced_once(mended):
        assert [first(mended(X, mode="double")), first(mended(X, mode="same"))] == numbers


def test_body_of_a_loop_that_captures_another_value():
    def total(k):
        return jax.lax.scan(lambda c, x: (c + k * x, None), 0.0, X)[0]

    text, numbers = failure(lambda: [float(total(k)) for k in (1.0, 2.0)])
    assert "k was 1.0, is 2.0." in text
    assert not KEEPING.search(text.partition("fix: ")[2])
    assert numbers == [2.0, 4.0]


def test_the_same_values_are_said_to_be_the_same_and_may_be_kept():
    text, _ = failure(lambda: [first(use(Options(1.0), X)) for _ in range(2)], use)
    assert "though it holds the same as the last" in text
    assert "Make the object passed as `options` once and keep it" in text
    text, _ = failure(lambda: [first(scaled(1.0, X)) for _ in range(2)])
    assert "differs" not in text
    assert "build the jitted lambda once and keep it" in text


def test_a_counter_of_the_body_is_no_difference():
    traces = {"n": 0}
    count = 0

    def call(x):
        def body(v):
            nonlocal count
            traces["n"] += 1
            count += 1
            return v + 1

        return jax.jit(body)(x)

    text, _ = failure(lambda: [first(call(X)) for _ in range(2)])
    assert count == 2
    assert "What it captures differs" not in text or not hasattr(jax, "typeof")


def test_optax_transformation_made_anew():
    optax = pytest.importorskip("optax")

    @functools.partial(jax.jit, static_argnums=0)
    def update(tx, grads, state):
        return tx.update(grads, state)[0]

    def run(*rates):
        numbers = []
        for rate in rates:
            tx = optax.sgd(rate, momentum=0.9)
            numbers.append(first(update(tx, X, tx.init(X))))
        return numbers

    text, numbers = failure(lambda: run(0.1, 0.2), update)
    assert numbers == pytest.approx([-0.1, -0.2])
    assert "step_size was -0.1, is -0.2" in text
    assert "`optax.inject_hyperparams`" in text
    text, _ = failure(lambda: run(0.1, 0.1), update)
    assert "though it holds the same as the last" in text
    assert re.search(r"fix: Make what is passed as `tx`, in the call at \S*test_made_anew.py:\d+, once", text)

    tx = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=0.9)
    mended = jax.jit(tx.update)
    state = tx.init(X)
    with traced_once(mended):
        same = []
        for rate in (0.1, 0.2):
            fresh = state._replace(hyperparams={**state.hyperparams, "learning_rate": jnp.asarray(rate)})
            same.append(first(mended(X, fresh)[0]))
    assert same == pytest.approx(numbers)
