"""A function that nobody holds any more is dead, whether or not the garbage collector has been there."""

from __future__ import annotations

import functools
import gc
import random

import jax
import jax.numpy as jnp
import pytest

from pytest_jitcache import RetraceError, traced_once

X = jnp.ones(2)
SOURCE = "def generated(x):\n    return x * 3.0\n"


@pytest.fixture(params=["as it is", "disabled", "at each allocation", "random"])
def collector(request):
    """The garbage collector, more or less eager; call it between two calls."""
    before = gc.get_threshold()
    chance = random.Random(7)
    if request.param == "disabled":
        gc.disable()
    elif request.param == "at each allocation":
        gc.set_threshold(50, 1, 1)
    yield lambda: request.param == "random" and chance.random() < 0.5 and gc.collect()
    gc.enable()
    gc.set_threshold(*before)


def from_a_string(filename="<string>"):
    scope = {"__name__": __name__}
    exec(compile(SOURCE, filename, "exec"), scope)  # noqa: S102
    return scope["generated"]


def from_a_bare_namespace():
    scope = {}
    exec(SOURCE, scope)  # noqa: S102
    return scope["generated"]


def calls_itself():
    def count(x, n=2):
        return x if n == 0 else count(x + 1, n - 1)

    return lambda x: count(x)


class Model:
    """In a cycle with a method of its own."""

    def __init__(self):
        self.callback = self.step
        self.scale = lambda x: x * 2.0  # leads nowhere, and is held by the cycle alone

    def step(self, x):
        return x + 1


def held_by_a_cycle():
    return Model().scale


def method_of_a_cycle():
    return Model().callback


def remembers_itself():
    def step(x):
        return x - 1

    step.me = step
    return step


MADE = {
    "string": from_a_string, "rules": functools.partial(from_a_string, "<rules>"),
    "file": functools.partial(from_a_string, "rules.py"), "this file": functools.partial(from_a_string, __file__),
    "bare namespace": from_a_bare_namespace, "recursion": calls_itself, "cycle": held_by_a_cycle,
    "method": method_of_a_cycle, "remembers itself": remembers_itself,
}  # fmt: skip


def drive(make, collector, times=3):
    for _ in range(times):
        jax.jit(make())(X)
        collector()


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_made_anew_and_dropped(make, collector):
    with pytest.raises(RetraceError, match="traced 3x, allowed 1"), traced_once():
        drive(make, collector)


class Trainer:
    def __init__(self, make):
        self.me = self
        self.step = jax.jit(make())


@pytest.mark.parametrize("make", [held_by_a_cycle, remembers_itself, from_a_string])
def test_held_by_an_object_of_a_cycle(make, collector):
    with pytest.raises(RetraceError, match="traced 3x, allowed 1"), traced_once():
        for _ in range(3):
            Trainer(make).step(X)
            collector()


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_kept(make, collector):
    kept = []
    with traced_once() as traces:
        for _ in range(3):
            kept.append(jax.jit(make()))
            kept[-1](X)
            collector()
    assert len(traces) == 3


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_kept_out_of_sight(make, collector):
    class Box:
        pass

    box = Box()
    for _ in range(9):  # deeper than anybody looks
        outer = Box()
        outer.inner = box
        box = outer
    bottom = box
    while hasattr(bottom, "inner"):
        bottom = bottom.inner
    bottom.kept = []
    with traced_once() as traces:
        for _ in range(3):
            bottom.kept.append(jax.jit(make()))
            bottom.kept[-1](X)
            collector()
    assert len(traces) == 3
