# case: unhashable static arguments where a test expects the error, and where none does
import functools
import unittest

import jax
import pytest


@functools.partial(jax.jit, static_argnums=1)
def f(x, sizes):
    return x


class Cases(unittest.TestCase):
    def test_block(self):
        with self.assertRaises(ValueError):
            f(1, [2])
        with self.assertRaisesRegex(ValueError, "hash"):
            f(1, {2: 3})

    def test_call(self):
        self.assertRaises(ValueError, lambda: f(1, [2]))


def check():
    with pytest.raises(ValueError, match="hash") as caught:
        f(1, {2})
    return caught


def forgotten():
    with open("x") as file:
        return f(file.read(), [2])  # expect: JIT301
