"""Scopes and flow as Python has them."""

import pytest
from sources import Inline, found, inline

SCOPES = inline("""\
== a parameter named jit
def hot(jit, x):
    return jit(lambda v: v + 1)(x)
== a local named jit
from jax import jit


def hot(x):
    jit = plain
    return jit(lambda v: v + 1)(x)
== a local named jit that is JAX's
import jax


def hot(x):
    jit = jax.jit
    return jit(lambda v: v + 1)(x)  # expect: JIT101
== a loop variable named jax
import jax


def hot(x):
    for jax in x:
        jax.jit(lambda v: v + 1)(x)
== a comprehension variable does not leak
from jax import jit


def hot(x):
    names = [jit for jit in x]
    return jit(lambda v: v + 1)(names)  # expect: JIT101
== a comprehension variable shadows inside
from jax import jit


def hot(x):
    return [jit(lambda v: v + 1)(x) for jit in x]
== the first iterable is outside of the comprehension
from jax import jit


def hot(x):
    return [jit for jit in jit(lambda v: v + 1)(x)]  # expect: JIT101
== a class body is not seen from its methods
from jax import jit


class Box:
    jit = staticmethod(lambda fn: fn)

    def hot(self, x):
        return jit(lambda v: v + 1)(x)  # expect: JIT101
== a class body sees itself
from jax import jit


class Box:
    jit = lambda fn: fn
    ready = [1, jit(lambda v: v + 1)]
== global reaches past a local of an outer function
from jax import jit


def outer():
    jit = plain

    def hot(x):
        global jit
        return jit(lambda v: v + 1)(x)  # expect: JIT101

    return hot, jit
== nonlocal reaches the outer function
from jax import jit


def outer():
    jit = plain

    def hot(x):
        nonlocal jit
        return jit(lambda v: v + 1)(x)

    return hot
== a local bound after its use is still local
from jax import jit


def hot(x):
    if x:
        return jit(lambda v: v + 1)(x)
    jit = plain
    return jit
== an exception's name shadows
from jax import jit


def hot(x):
    try:
        return x()
    except ValueError as jit:
        return jit(lambda v: v + 1)(x)
== a with statement's name shadows
from jax import jit


def hot(x):
    with x as jit:
        return jit(lambda v: v + 1)(x)
== a match capture shadows
from jax import jit


def hot(x):
    match x:
        case {"jit": jit}:
            return jit(lambda v: v + 1)(x)
        case [jit, *rest]:
            return jit(lambda v: v + 1)(rest)
        case {"other": 1, **jit}:
            return jit(lambda v: v + 1)(x)
== a walrus binds around the comprehension
import jax


def hot(xs):
    fns = [(fn := jax.jit(lambda v: v + 1)) for x in xs]
    return fns, fn
== a nested function's name shadows
from jax import jit


def hot(x):
    def jit(fn):
        return fn

    return jit(lambda v: v + 1)(x)
== a class's name shadows
from jax import jit


def hot(x):
    class jit:
        def __init__(self, fn):
            self.fn = fn

    return jit(lambda v: v + 1)
== a deleted name and a new one
from jax import jit


def hot(x):
    fn = jit(lambda v: v + 1)  # expect: JIT101
    y = fn(x)
    del fn
    fn = plain
    return fn(y)
== a decorator is evaluated outside of what it decorates
from jax import jit


def outer(x):
    @jit  # expect: JIT103
    def add(v, jit=None):
        return v

    return add(x)
== a default is evaluated outside
from jax import jit


def hot(x):
    def add(v, jit=jit(lambda v: v + 1)(x)):  # expect: JIT101
        return v

    return add(x)
== an annotation is evaluated outside
from jax import jit


def outer(x):
    def add(v: jit(lambda v: v + 1)(x)):  # expect: JIT101
        return v

    return add(x)
== a name bound in both branches
import jax


def hot(x, fast):
    if fast:
        fn = jax.jit(lambda v: v + 1)  # expect: JIT101
    else:
        fn = plain
    return fn(x)
== a rebinding between making and using
import jax


def hot(x):
    fn = jax.jit(lambda v: v + 1)
    fn = plain
    return fn(x)
== a rebinding of the target
import jax


def hot(x):
    fn = lambda v: v + 1
    fn = jax.numpy.sin
    return jax.jit(fn)(x)  # expect: JIT107
== a loop that rebinds the target behind the use
import jax


def main():
    fn = jax.numpy.sin
    for x in range(3):
        jax.jit(fn)(x)  # expect: JIT101
        fn = lambda v: v + x
== a lambda's parameter shadows
from jax import jit

run = lambda jit, x: jit(lambda v: v + 1)(x)
== a try that binds, an else that uses
import jax


def hot(x):
    try:
        fn = jax.jit(lambda v: v + 1)  # expect: JIT101
    except ValueError:
        return None
    else:
        return fn(x)
== type parameters
import jax


def hot(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== two functions of one name
import jax


def add(v):
    return v + 1


def hot(x):
    return jax.jit(add)(x)  # expect: JIT107


def add(v):
    return v + 2
== names in different functions
import jax


def first(x):
    fn = jax.jit(lambda v: v + 1)  # expect: JIT101
    return fn(x)


def second(x, fn):
    return fn, x
== global in a class body
import jax


def build():
    class Box:
        global FN
        FN = jax.jit(lambda v: v + 1)

    return Box
== an unpacked starred name
import jax


def make():
    first, *others = [jax.jit(lambda v: v + 1), jax.jit(lambda v: v - 1)]
    return first, others
== nested tuples of targets
import jax


def hot(x):
    (fn, one), two = (jax.jit(lambda v: v + 1), 1), 2  # expect: JIT101
    return fn(x) + one + two
== a comprehension inside a class inside a function
import jax


def hot(xs):
    class Box:
        items = [jax.jit(lambda v: v + 1)(x) for x in xs]  # expect: JIT101

    return Box
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", SCOPES, ids=about)
def test_scope(item: Inline) -> None:
    assert found(item) == item.expected
