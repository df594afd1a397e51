"""What stands behind an entry of a table, `super()`, an annotation and an attribute, where that is jitted."""

import pytest
from sources import Inline, found, inline

SOURCES = inline("""\
== a function that is chosen from a table by a key
import jax

KINDS = {"sum": lambda x: x.sum(), "mean": lambda x: x.mean()}


def reduce_with(kind, x):
    return jax.jit(KINDS[kind])(x)  # expect: JIT107


def reduce_with_own(kind, x):
    kinds = {"sum": lambda v: v.sum(), "mean": lambda v: v.mean()}
    return jax.jit(kinds[kind])(x)  # expect: JIT101


def reduce_at(number, x):
    return jax.jit((lambda v: v.sum(), lambda v: v.mean())[number])(x)  # expect: JIT101


def reduce_with_given(kinds, kind, x):
    return jax.jit(kinds[kind])(x)
== a method through `super()` and through an annotation
import jax


class Maze:
    def reset(self, key):
        return key

    @staticmethod
    def size(key):
        return key


class View(Maze):
    def again(self, key):
        return jax.jit(super().reset)(key)  # expect: JIT104


class Runner:
    env: Maze

    def restart(self, key):
        return jax.jit(self.env.reset)(key)  # expect: JIT104


def restart(env: Maze, key):
    return jax.jit(env.reset)(key)  # expect: JIT104


def restart_any(env, key):
    return jax.jit(env.reset)(key)


class Holder:
    def __init__(self, env):
        self.env = env
        self.reset = jax.jit(env.reset)

    def restart(self, key):
        return self.reset(key)

    def unknown(self, key):
        return jax.jit(self.env.reset)(key)
""")


@pytest.mark.parametrize("item", SOURCES, ids=lambda item: item.about)
def test_behind(item: Inline) -> None:
    assert found(item) == item.expected
