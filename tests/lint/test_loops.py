"""JIT401 and JIT501: eager loops."""

from __future__ import annotations

import textwrap

import pytest
from sources import judge

HEAD = """
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
from jax import jit, lax

def body(carry, row):
    return carry + row, None

@jax.jit
def f(x, n=0):
    return x
"""

EAGER = {
    "each_kind": """
        def main():
            x = jnp.ones(3)
            for k in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
                x = lax.while_loop(lambda v: v.sum() < 1, lambda v: v + 1, x)  # expect: JIT401
                x = lax.fori_loop(0, 9, lambda i, v: v + i, x)  # expect: JIT401
                x = lax.cond(True, lambda v: v, lambda v: -v, x)  # expect: JIT401
                x = lax.switch(k, [lambda v: v, lambda v: -v], x)  # expect: JIT401
                x = lax.map(lambda v: v, x)  # expect: JIT401
    """,
    "module_level_and_name_guard": """
        x = jnp.ones(3)
        for _ in range(9):
            x, _ = lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
        if __name__ == "__main__":
            while x.sum() < 9:
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
    """,
    "partial_and_nested_function": """
        def main():
            x = jnp.ones(3)
            for k in range(9):
                x, _ = lax.scan(partial(body), x, x)  # expect: JIT401
                def inner(c, r):
                    return c + r * k, None
                x, _ = lax.scan(inner, x, x)  # expect: JIT401
    """,
    "by_keyword": """
        def main():
            x = jnp.ones(3)
            for k in range(9):
                x = lax.fori_loop(0, 9, body_fun=lambda i, v: v, init_val=x)  # expect: JIT401
                x, _ = lax.scan(f=lambda c, r: (c, r), init=x, xs=x)  # expect: JIT401
    """,
    "a_test": """
        def test_scan():
            x = jnp.ones(3)
            for _ in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
    """,
    "a_driver_of_a_jitted_step": """
        def train(x, n):
            for _ in range(n):
                x = f(x)
                y, _ = lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
            return x
    """,
    "a_function_that_only_a_loop_in_main_calls": """
        def epoch(x):
            return lax.scan(lambda c, r: (c + r, None), x, x)  # expect: JIT401
        def main():
            x = jnp.ones(3)
            for _ in range(9):
                x, _ = epoch(x)
    """,
    "map_of_a_stable_function": """
        def main():
            for _ in range(9):
                lax.map(f, jnp.ones(3))  # expect: JIT401
    """,
    "fori_loop_with_a_moving_bound": """
        def main():
            for n in range(9):
                lax.fori_loop(0, n, body, 0)  # expect: JIT401
                lax.fori_loop(0, jnp.asarray(n), body, 0)
                lax.fori_loop(0, 9, body, n)
    """,
    "method_looked_up_on_its_object": """
        class A:
            def body(self, c, r):
                return c + r, None
        def main():
            a = A()
            x = jnp.ones(3)
            for _ in range(9):
                x, _ = lax.scan(a.body, x, x)  # expect: JIT401
    """,
    # ---- silent
    "stable_bodies": """
        def main():
            x = jnp.ones(3)
            def inner(c, r):
                return c + r, None
            add = partial(body)
            for _ in range(9):
                x, _ = lax.scan(body, x, x)
                x, _ = lax.scan(inner, x, x)
                x, _ = lax.scan(add, x, x)
    """,
    "no_loop": """
        def main():
            x = jnp.ones(3)
            x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
    """,
    "traced": """
        @jit
        def g(x):
            for _ in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
            return x
        def helper(x):
            for _ in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
            return x
        h = jit(helper)
    """,
    "maybe_traced": """
        def layer(x):
            for _ in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
            return x
        class A:
            def run(self, x):
                for _ in range(9):
                    x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
                return x
    """,
    "handed_on_by_main": """
        def layer(x):
            for _ in range(9):
                x, _ = lax.scan(lambda c, r: (c + r, None), x, x)
            return x
        def main():
            jax.vmap(layer)(jnp.ones(3))
            jax.jit(layer)(jnp.ones(3))
    """,
}

SHAPES = {
    "slices": """
        def run(x, n):
            for k in range(n):
                f(x[:k])  # expect: JIT501
                f(x[k:])  # expect: JIT501
                f(x[: k + 1])  # expect: JIT501
                f(x[:, :k])  # expect: JIT501
                f(x[: n - k])  # expect: JIT501
                f(x[-k:])  # expect: JIT501
                f(x[k : 2 * k])  # expect: JIT501
    """,
    "made_to_a_length": """
        def run(x, n, key):
            for k in range(n):
                f(jnp.ones(k))  # expect: JIT501
                f(jnp.zeros((k, 3)))  # expect: JIT501
                f(jnp.full((k,), 1.0))  # expect: JIT501
                f(jnp.arange(k))  # expect: JIT501
                f(jnp.arange(2, k))  # expect: JIT501
                f(np.linspace(0, 1, k))  # expect: JIT501
                f(np.linspace(0, 1, num=k))  # expect: JIT501
                f(jnp.eye(k))  # expect: JIT501
                f(jax.random.normal(key, (k,)))  # expect: JIT501
                f(jax.random.normal(key, shape=(k,)))  # expect: JIT501
                f(jnp.array([0.0] * k))  # expect: JIT501
                f(jnp.tile(x, k))  # expect: JIT501
    """,
    "through_a_name_and_a_wrapper": """
        def run(x, n):
            for k in range(n):
                prefix = x[:k]
                f(prefix)  # expect: JIT501
                f(jnp.asarray(prefix))  # expect: JIT501
                f(2 * prefix)  # expect: JIT501
                f((x, prefix))  # expect: JIT501
    """,
    "by_keyword_and_in_a_comprehension": """
        def run(x, n):
            f(x=x[:n])
            return [f(x=x[:k]) for k in range(n)]  # expect: JIT501
    """,
    "while_counter": """
        def run(x, n):
            k = 1
            while k < n:
                f(x[:k])  # expect: JIT501
                k *= 2
    """,
    "jitted_method": """
        class A:
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x
            def run(self, x, n):
                for k in range(n):
                    self.step(x[:k])  # expect: JIT501
    """,
    "main": """
        def main():
            for k in range(99):
                f(jnp.ones(k))  # expect: JIT501
    """,
    # ---- silent
    "windows_of_one_size": """
        WIDTH = 8
        def run(x, n, width):
            for k in range(n):
                stop = k + width
                f(x[k : k + 8])
                f(x[k : k + WIDTH])
                f(x[k:stop])
                f(x[k * width : (k + 1) * width])
                f(x[k - width : k])
                f(x[:, k : k + width])
                f(jnp.arange(k, k + 8))
                f(x[k : min(k + width, n)])
    """,
    "items_and_values": """
        def run(x, n, xs):
            for k in range(n):
                f(x[k])
                f(x[k, :])
                f(x[:, k])
                f(k)
                f(jnp.full((3,), k))
                f(jnp.ones(n))
                f(x[:n])
                f(jnp.asarray(k))
                f(jnp.linspace(0, k, 9))
            for row in xs:
                f(row)
                f(row[:3])
                f(row[: len(row)])
                f(jnp.ones(row.shape))
    """,
    "static_argument": """
        g = jax.jit(lambda x, n: x, static_argnums=1)
        def run(x, n):
            for k in range(n):
                g(x, (k,))  # expect: JIT303
    """,
    "few_lengths": """
        def run(x):
            for k in (8, 16):
                f(x[:k])
            for k in range(1, 4):
                f(jnp.ones(k))
    """,
    "traced_code_and_tests": """
        @jit
        def run(x):
            for k in range(99):
                x = x + f(x[:k]).sum()
            return x
        def test_lengths():
            for k in range(99):
                assert f(jnp.ones(k)).shape == (k,)
    """,
    "not_jitted": """
        def g(x):
            return x
        def run(x, n):
            for k in range(n):
                g(x[:k])
    """,
}


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in EAGER.items()])
def test_eager_loops(source: str) -> None:
    judge(HEAD + textwrap.dedent(source), only="JIT401")


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in SHAPES.items()])
def test_growing_shapes(source: str) -> None:
    judge(HEAD + textwrap.dedent(source), only="JIT303" if "JIT303" in source else "JIT501")
