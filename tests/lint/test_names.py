"""Question 1: is it a jit? Imports, aliases and aliases of aliases."""

import pytest
from sources import Inline, found, inline

NAMES = inline("""\
== import jax as
import jax as j


def hot(x):
    return j.jit(lambda v: v + 1)(x)  # expect: JIT101
== from jax import jit as
from jax import jit as compiled


def hot(x):
    return compiled(lambda v: v + 1)(x)  # expect: JIT101
== an alias
import jax

compiled = jax.jit


def hot(x):
    return compiled(lambda v: v + 1)(x)  # expect: JIT101
== an alias of a module
import jax

backend = jax


def hot(x):
    return backend.jit(lambda v: v + 1)(x)  # expect: JIT101
== an alias of an alias, bound in another order
import jax


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101


compiled = jax.jit
quick = compiled
== an alias by a chained assignment
import jax

quick = compiled = jax.jit


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101
== an alias of a pair
import jax

quick, many = jax.jit, jax.vmap


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101
== an alias with an annotation
import jax

quick: object = jax.jit


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101
== an alias chosen by a condition
import jax

quick = jax.jit if FAST else (lambda fn: fn)


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101
== an alias chosen by a statement
import jax

if FAST:
    quick = jax.jit
else:
    quick = plain


def hot(x):
    return quick(lambda v: v + 1)(x)  # expect: JIT101
== an alias of itself
import jax

jax = jax


def hot(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== an import in a try
try:
    from jax import jit
except ImportError:
    jit = None


def hot(x):
    return jit(lambda v: v + 1)(x)  # expect: JIT101
== an import in a try with another function instead
try:
    from jax import jit
except ImportError:
    def jit(fn):
        return fn


def hot(x):
    return jit(lambda v: v + 1)(x)  # expect: JIT101
== an import under TYPE_CHECKING alone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jax import jit


def hot(x):
    from jax import jit

    return jit(lambda v: v + 1)(x)  # expect: JIT101
== an import in a function
def hot(x):
    from jax import jit

    return jit(lambda v: v + 1)(x)  # expect: JIT101
== an import in another function
def hot(x):
    return jit(lambda v: v + 1)(x)


def other():
    from jax import jit

    return jit
== a star import of JAX
from jax import *


def hot(x):
    return jit(lambda v: v + 1)(x)  # expect: JIT101
== another star import
from jax.numpy import *


def hot(x):
    return jit(lambda v: v + 1)(x)
== a submodule import binds the package
import jax.numpy


def hot(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a submodule import under a name binds the submodule
import jax.numpy as jnp


def hot(x):
    return jnp.jit(lambda v: v + 1)(x)
== pjit
from jax.experimental.pjit import pjit


def hot(x):
    return pjit(lambda v: v + 1)(x)  # expect: JIT101
== a relative import named jax
from . import jax


def hot(x):
    return jax.jit(lambda v: v + 1)(x)
== a jit of another package
from numba import jit


def hot(x):
    return jit(lambda v: v + 1)(x)
== a partial of jit under a name
import functools

import jax

static = functools.partial(jax.jit, static_argnums=1)


def hot(x):
    return static(lambda v, n: v + n)(x, 1)  # expect: JIT101
== a partial of a partial of jit
from functools import partial

import jax

static = partial(partial(jax.jit, static_argnums=1), donate_argnums=0)


def hot(x):
    return static(lambda v, n: v + n)(x, 1)  # expect: JIT101
== a jit with options under a name
import jax

static = jax.jit(static_argnums=1)


def hot(x):
    return static(lambda v, n: v + n)(x, 1)  # expect: JIT101
== functools under a name
import functools as ft

import jax


def hot(x):
    @ft.partial(jax.jit, static_argnums=1)  # expect: JIT103
    def add(v, n):
        return v + n

    return add(x, 1)
== equinox under its own name
import equinox


def hot(x):
    return equinox.filter_jit(lambda v: v + 1)(x)  # expect: JIT101
== flax.nnx by its full name
import flax


def hot(x):
    return flax.nnx.jit(lambda v: v + 1)(x)  # expect: JIT101
== a jit of this package by a relative import
from .compat import jit


def hot(x):
    return jit(lambda v: v + 1)(x)
== an attribute of self
import jax


class Box:
    def __init__(self):
        self.jit = jax.jit

    def hot(self, x):
        return self.jit(lambda v: v + 1)(x)
== a getter of the module
import importlib


def hot(x):
    jax = importlib.import_module("jax")
    return jax.jit(lambda v: v + 1)(x)
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", NAMES, ids=about)
def test_name(item: Inline) -> None:
    assert found(item) == item.expected
