"""What tells a function made anew from another one of its place: `content`."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pytest_jitcache.suite.content import content


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n


class Plain(Slotted):
    pass


@dataclasses.dataclass
class Config:
    n: int
    names: list[str] = dataclasses.field(default_factory=list)


def scaled(k):
    return lambda x: k * x


MAKERS = {
    "slice": lambda n: slice(n),
    "range": lambda n: range(n),
    "dtype": lambda n: np.dtype(f"f{2**n}"),
    "decimal": lambda n: decimal.Decimal(n),
    "date": lambda n: datetime.date(2026, 1, n),
    "slots": Slotted,
    "dictionary and slots": Plain,
    "dataclass": Config,
    "list": lambda n: [n, "a"],
    "dict": lambda n: {"a": n},
    "closure": scaled,
    "partial": lambda n: functools.partial(scaled, n),
    "vmap": lambda n: jax.vmap(scaled(n)),
    "vmap of grad": lambda n: jax.vmap(jax.grad(scaled(n))),
    "shape": lambda n: jnp.ones(n),
    "dtype of jax": lambda n: jnp.ones(3, f"f{2**n}").dtype,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_equal_for_what_holds_the_same_and_for_nothing_else(make):
    one = make(1)
    assert content(one) == content(one)
    assert content(one) == content(make(1))
    assert content(one) != content(make(2))


def test_one_object_is_equal_to_itself_whatever_becomes_of_it():
    config, sentinel = Config(1), object()
    before = content([config, sentinel])
    config.n = 2
    assert content([config, sentinel]) == before
    assert content([config, object()]) != before


def test_a_weak_reference_is_followed():
    def held():
        return 1

    assert content(weakref.ref(held)) == content(weakref.ref(held))


def test_a_module_of_nnx_is_equal_to_itself():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    assert content(model) == content(model)


def test_no_array_is_kept_alive():
    kept, gone = [], []
    for hold in (lambda a: [a], lambda a: {"a": a}, lambda a: lambda: a, lambda a: functools.partial(jnp.add, a)):
        array = jnp.ones(3)
        kept.append(content(hold(array)))
        gone.append(weakref.ref(array))
        del array
    assert [one() for one in gone] == [None] * 4
