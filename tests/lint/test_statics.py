"""JIT301 to JIT304: static arguments."""

from __future__ import annotations

import textwrap

import pytest
from sources import judge, text_of

from flake8_jitcache.options import Options

HEAD = """
import dataclasses
import enum
import itertools
from functools import partial, wraps
from typing import NamedTuple
import jax
import jax.numpy as jnp
import numpy as np
from jax import jit

@partial(jax.jit, static_argnames=("n", "fn"))
def f(x, n=0, fn=None):
    return x * n
"""

UNHASHABLE = {
    "displays": """
        a = f(1.0, [1])  # expect: JIT301
        b = f(1.0, n={"a": 1})  # expect: JIT301
        c = f(1.0, n={1, 2})  # expect: JIT301
        d = f(1.0, fn=[k for k in range(3)])  # expect: JIT301
    """,
    "calls": """
        a = f(1.0, list("ab"))  # expect: JIT301
        b = f(1.0, dict(a=1))  # expect: JIT301
        c = f(1.0, np.array([1, 2]))  # expect: JIT301
        d = f(1.0, jnp.zeros(3))  # expect: JIT301
        e = f(1.0, sorted("ba"))  # expect: JIT301
        g = f(1.0, "a b".split())  # expect: JIT301
        h = f(1.0, [0] * 3)  # expect: JIT301
    """,
    "in_a_tuple": """
        a = f(1.0, (1, [2]))  # expect: JIT301
    """,
    "through_a_name": """
        DIMS = [0, 1]
        def run(x):
            sizes = {"a": 1}
            f(x, DIMS)  # expect: JIT301
            return f(x, n=sizes)  # expect: JIT301
    """,
    "dataclass_that_compares_by_value": """
        @dataclasses.dataclass
        class Config:
            a: int
        def run(x):
            return f(x, Config(1))  # expect: JIT301
    """,
    "class_with_eq_and_no_hash": """
        class Config:
            def __eq__(self, other):
                return True
        def run(x):
            return f(x, Config())  # expect: JIT301
    """,
    "method": """
        class A:
            @partial(jax.jit, static_argnums=(0, 2))
            def step(self, x, dims):
                return x
            def run(self, x):
                return self.step(x, [1])  # expect: JIT301
    """,
    "method_through_its_class": """
        class A:
            @partial(jax.jit, static_argnums=(0, 2))
            def step(self, x, dims):
                return x
        def run(x):
            A.step(A(), x, [1])  # expect: JIT301
            return A().step(x, [1])  # expect: JIT301
    """,
    "jitted_attribute": """
        class A:
            def __init__(self):
                self.step = jax.jit(self._step, static_argnums=1)
            def _step(self, x, dims):
                return x
            def run(self, x):
                return self.step(x, [1])  # expect: JIT301
    """,
    "negative_number": """
        g = jit(lambda x, n: x, static_argnums=-1)
        a = g(1.0, [1])  # expect: JIT301
    """,
    "numbers_in_a_variable": """
        STATIC = (1, 2)
        g = jit(lambda x, n, m: x, static_argnums=STATIC)
        a = g(1.0, 1, [1])  # expect: JIT301
    """,
    "number_means_the_keyword_too": """
        g = jit(lambda x, n: x, static_argnums=1)
        a = g(1.0, n=[1])  # expect: JIT301
    """,
    "behind_a_transform": """
        def loss(x, dims):
            return x
        g = jax.jit(jax.vmap(loss), static_argnums=1)
        a = g(1.0, [1])  # expect: JIT301
    """,
    "product_of_a_factory": """
        def make():
            return jax.jit(lambda x, n: x, static_argnames="n")
        g = make()
        a = g(1.0, n=[1])  # expect: JIT301
    """,
    "called_at_once": """
        def loss(x, dims):
            return x
        a = jax.jit(loss, static_argnums=1)(1.0, [1])  # expect: JIT301
    """,
    "staged": """
        a = f.lower(1.0, n=[1])  # expect: JIT301
    """,
    "pmap": """
        g = jax.pmap(lambda x, n: x, static_broadcasted_argnums=1)
        a = g(jnp.ones(1), [1])  # expect: JIT301
    """,
    "arguments_after_star_parameters": """
        g = jit(lambda *xs, n: xs, static_argnames="n")
        a = g(1.0, 2.0, n=[1])  # expect: JIT301
    """,
    "default": """
        @partial(jax.jit, static_argnums=1)  # expect: JIT301
        def g(x, dims=[0]):
            return x
        h = jit(lambda x, *, opts={}: x, static_argnames="opts")  # expect: JIT301
        @partial(jax.jit, static_argnames="dims")
        def fine(x, dims=(0,), extra=[1]):
            return x
    """,
    "default_array": """
        @partial(jax.jit, static_argnames="w")  # expect: JIT301
        def g(x, w=np.ones(3)):
            return x
    """,
    # ---- silent
    "hashable": """
        SIZES = (1, 2)
        @dataclasses.dataclass(frozen=True)
        class Config:
            a: int
        @dataclasses.dataclass(unsafe_hash=True)
        class Hashed:
            a: int
        class Point(NamedTuple):
            a: int
        f(1.0, None)
        f(1.0, (1, (2, "a")))
        f(1.0, SIZES)
        f(1.0, Config(1))
        f(1.0, Hashed(1))
        f(1.0, Point(1))
        f(1.0, range(3))
        f(1.0, frozenset([1]))
        f(1.0, tuple([1]))
        f(1.0, np.float32(1))
    """,
    "traced_argument": """
        a = f([1.0], 2)
        b = f({"a": 1.0}, n=2)
    """,
    "name_of_two_values": """
        def run(x, flag):
            dims = [0]
            if flag:
                dims = (0,)
            return f(x, dims)
    """,
    "converted": """
        def run(x):
            dims = [0]
            dims = tuple(dims)
            return f(x, dims)
    """,
    "another_function_of_the_name": """
        def g(x, n):
            return x
        a = g(1.0, [1])
    """,
    "another_class_with_the_method": """
        class A:
            @partial(jax.jit, static_argnums=(0, 2))
            def step(self, x, dims):
                return x
        class B:
            def step(self, x, dims):
                return x
            def run(self, x):
                return self.step(x, [1])
    """,
    "wrapped_in_something_else": """
        def twice(fn):
            def wrapper(dims, x):
                return fn(x, dims)
            return wrapper
        g = twice(f)
        a = g([1], 2)
    """,
    "starred": """
        def run(x, rest):
            return f(*rest, [1])
    """,
}

MISFITS = {
    "number": """
        def g(a, b):
            return a
        h = jit(g, static_argnums=2)  # expect: JIT302
        i = jit(g, static_argnums=(0, -3))  # expect: JIT302
        j = jit(lambda: 1, static_argnums=0)  # expect: JIT302
        k = jit(g, static_argnums=(0, 1))
        m = jit(g, static_argnums=-2)
    """,
    "name": """
        @partial(jax.jit, static_argnames=("a", "c"))  # expect: JIT302
        def g(a, b):
            return a
        @jax.jit(static_argnames="c")  # expect: JIT302
        def h(a, b):
            return a
    """,
    "keyword_only_by_number": """
        @partial(jax.jit, static_argnums=1)  # expect: JIT302
        def g(a, *, b):
            return a
        @partial(jax.jit, static_argnames="b")
        def h(a, *, b):
            return a
    """,
    "positional_only_by_name": """
        @partial(jax.jit, static_argnames="b")  # expect: JIT302
        def g(a, b, /):
            return a
        @partial(jax.jit, static_argnums=1)
        def h(a, b, /):
            return a
    """,
    "variadic": """
        g = jit(lambda *args: args, static_argnums=7)
        h = jit(lambda **kwargs: kwargs, static_argnames="anything")
        i = jit(lambda *args: args, static_argnames="args")  # expect: JIT302
        j = jit(lambda *args: args, static_argnames="a")  # expect: JIT302
        k = jit(lambda x, **kwargs: x, static_argnums=1)  # expect: JIT302
    """,
    "method": """
        class A:
            @partial(jax.jit, static_argnums=(0, 2))
            def good(self, x, n):
                return x
            @partial(jax.jit, static_argnums=(0, 3))  # expect: JIT302
            def bad(self, x, n):
                return x
            @staticmethod
            @partial(jax.jit, static_argnums=2)  # expect: JIT302
            def static(x, n):
                return x
            def __init__(self):
                self.a = jax.jit(self.plain, static_argnums=1)
                self.b = jax.jit(self.plain, static_argnums=2)  # expect: JIT302
            def plain(self, x, n):
                return x
        c = jax.jit(A.plain, static_argnums=2)
    """,
    "partial": """
        def g(a, b, c):
            return a
        h = jit(partial(g, 1), static_argnums=1)
        i = jit(partial(g, 1), static_argnums=2)  # expect: JIT302
        j = jit(partial(g, c=1), static_argnums=2)  # expect: JIT302
        k = jit(partial(g, c=1), static_argnames="c")
        m = jit(partial(g, 1), static_argnames="a")  # expect: JIT302
    """,
    "transforms_keep_the_signature": """
        def g(a, b):
            return a
        h = jit(jax.vmap(g), static_argnums=2)  # expect: JIT302
        i = jit(jax.value_and_grad(jax.checkpoint(g)), static_argnames="c")  # expect: JIT302
    """,
    "through_decorators_below": """
        @partial(jax.jit, static_argnums=2)  # expect: JIT302
        @jax.vmap
        def g(a, b):
            return a
    """,
    "prepared_jit": """
        static_jit = partial(jax.jit, static_argnames="mode")
        @static_jit
        def g(a, mode):
            return a
        @static_jit  # expect: JIT302
        def h(a, b):
            return a
    """,
    "options_in_variables": """
        NUMBERS = (5,)
        NAMES = ["q"]
        def g(a, b):
            return a
        h = jit(g, static_argnums=NUMBERS)  # expect: JIT302
        i = jit(g, static_argnames=NAMES)  # expect: JIT302
    """,
    "factory_product": """
        def make():
            def g(a, b):
                return a
            return g
        h = jit(make(), static_argnums=2)  # expect: JIT302
    """,
    # ---- silent
    "unknown": """
        import somewhere
        from elsewhere import changes_signature
        def make(numbers, fn):
            return jit(fn, static_argnums=9), jit(f, static_argnums=numbers)
        a = jit(somewhere.g, static_argnums=9)
        @partial(jax.jit, static_argnums=9)
        @changes_signature
        def g(a):
            return a
        @changes_signature
        def h(a):
            return a
        i = jit(h, static_argnums=9)
        j = jax.pmap(lambda x: x, static_broadcasted_argnums=9)
        k = jit(lambda x: x, static_argnums=None, static_argnames=())
        m = jit(lambda x: x, donate_argnums=9)
    """,
    "two_definitions": """
        import sys
        if sys.platform == "linux":
            def g(a, b):
                return a
        else:
            def g(a):
                return a
        h = jit(g, static_argnums=1)
    """,
    "rebound_before": """
        def g(a):
            return a
        def g(a, b):
            return a
        h = jit(g, static_argnums=1)
    """,
}

IN_LOOP = {
    "range": """
        def run(x, m):
            for k in range(m):
                x = f(x, k)  # expect: JIT303
            return x
    """,
    "keyword_and_arithmetic": """
        def run(x, m):
            for k in range(m):
                x = f(x, n=2 * k + 1)  # expect: JIT303
            return x
    """,
    "comprehension": """
        def run(x, m):
            return [f(x, k) for k in range(m)]  # expect: JIT303
    """,
    "enumerate": """
        def run(x, batches):
            for step, batch in enumerate(batches):
                x = f(batch, step)  # expect: JIT303
            return x
    """,
    "while_counter": """
        def run(x, m):
            k = 0
            while k < m:
                x = f(x, k)  # expect: JIT303
                k += 1
            return x
    """,
    "counter_beside_a_for_loop": """
        def run(x, batches):
            step = 0
            for batch in batches:
                x = f(batch, step)  # expect: JIT303
                step = step + 1
            return x
    """,
    "through_a_name": """
        def run(x, m):
            for k in range(m):
                width = k + 1
                x = f(x, width)  # expect: JIT303
            return x
    """,
    "in_a_tuple_and_a_string": """
        def run(x, m):
            for k in range(m):
                x = f(x, (k, k))  # expect: JIT303
                x = f(x, f"step{k}")  # expect: JIT303
            return x
    """,
    "outer_loop": """
        def run(x, m):
            for k in range(m):
                for _ in range(2):
                    x = f(x, k)  # expect: JIT303
            return x
    """,
    "in_main_too": """
        def main():
            x = 1.0
            for k in range(100):
                x = f(x, k)  # expect: JIT303
    """,
    "module_level": """
        for k in range(100):
            f(1.0, k)  # expect: JIT303
    """,
    "many_literals": """
        def run(x):
            for k in (1, 2, 3, 4, 5):
                x = f(x, k)  # expect: JIT303
            return x
    """,
    # ---- silent
    "few_literals": """
        MODES = ("a", "b")
        def run(x):
            for mode in ("train", "test"):
                x = f(x, mode)
            for mode in MODES:
                x = f(x, mode)
            for k in range(4):
                x = f(x, k)
            for k in range(0, 1000, 250):
                x = f(x, k)
            for k, mode in enumerate(MODES):
                x = f(x, k)
            for mode, k in zip(MODES, itertools.count()):
                x = f(x, k)
            for k, _ in itertools.product((1, 2), range(100)):
                x = f(x, k)
            return x
    """,
    "keys_and_items": """
        def run(x, table):
            for name in table.keys():
                x = f(x, name)
            for name, value in table.items():
                x = f(value, name)
            return x
    """,
    "same_each_time": """
        def run(xs, width):
            for x in xs:
                x = f(x, width)
                x = f(x, x.dtype)
                x = f(x, x.shape)
                x = f(x, len(xs))
            return x
    """,
    "few_values_of_many": """
        def run(x, m):
            for k in range(m):
                x = f(x, k % 2)
                x = f(x, k == 0)
                x = f(x, "a" if k else "b")
                x = f(x, min(k, 3))
            return x
    """,
    "traced_argument": """
        def run(x, m):
            for k in range(m):
                x = f(k, 3)
            return x
    """,
    "in_traced_code": """
        @jit
        def run(x):
            for k in range(100):
                x = f(x, k)
            return x
    """,
    "in_a_test": """
        def test_sizes():
            for k in range(100):
                assert f(1.0, k) == k
    """,
    "called_after_the_loop": """
        def run(x, m):
            for k in range(m):
                pass
            return f(x, k)
    """,
}

FRESH = {
    "lambda": """
        def run(x):
            return f(x, fn=lambda v: v)  # expect: JIT304
    """,
    "partial": """
        def run(x):
            return f(x, fn=partial(abs))  # expect: JIT304
    """,
    "nested_function": """
        def run(x, k):
            def shift(v):
                return v + k
            return f(x, fn=shift)  # expect: JIT304
    """,
    "named_lambda": """
        def run(x):
            fn = lambda v: v
            return f(x, fn=fn)  # expect: JIT304
    """,
    "transform": """
        def run(x):
            return f(x, fn=jax.grad(abs))  # expect: JIT304
    """,
    "instance": """
        class Rule:
            pass
        def run(x):
            return f(x, fn=Rule())  # expect: JIT304
    """,
    "instance_of_a_dataclass_without_eq": """
        @dataclasses.dataclass(eq=False)
        class Rule:
            a: int
        def run(x):
            return f(x, fn=Rule(1))  # expect: JIT304
    """,
    "instance_of_a_subclass": """
        class Base:
            pass
        class Rule(Base):
            pass
        def run(x):
            return f(x, fn=Rule())  # expect: JIT304
    """,
    "nan": """
        def run(x):
            return f(x, float("nan"))  # expect: JIT304
    """,
    "object": """
        def run(x):
            return f(x, object())  # expect: JIT304
    """,
    "in_a_tuple": """
        def run(x):
            return f(x, (1, lambda v: v))  # expect: JIT304
    """,
    "loop_in_main": """
        def main():
            for _ in range(9):
                f(1.0, fn=lambda v: v)  # expect: JIT304
    """,
    "loop_at_module_level": """
        for _ in range(9):
            f(1.0, fn=lambda v: v)  # expect: JIT304
    """,
    # ---- silent
    "stable": """
        import math
        def shift(v):
            return v
        RULE = partial(abs)
        class Kind(enum.Enum):
            A = 1
        class Rule:
            pass
        class Point(NamedTuple):
            a: int
        @dataclasses.dataclass(frozen=True)
        class Frozen:
            a: int
        rule = Rule()
        class Owner:
            def go(self, x):
                return f(x, fn=self.method)
            def method(self, v):
                return v
        def run(x):
            f(x, fn=shift)
            f(x, fn=jnp.sin)
            f(x, fn=RULE)
            f(x, fn=Kind(1))
            f(x, fn=rule)
            f(x, fn=Point(1))
            f(x, fn=Frozen(1))
            f(x, math.nan)
            return f(x, fn=Owner)
    """,
    "hashes_by_value": """
        class Rule:
            def __eq__(self, other):
                return True
            def __hash__(self):
                return 1
        class Child(Rule):
            pass
        def run(x):
            f(x, fn=Rule())
            return f(x, fn=Child())
    """,
    "unknown_base_or_decorator": """
        import somewhere
        class Rule(somewhere.Base):
            pass
        @somewhere.decorated
        class Other:
            pass
        def run(x):
            f(x, fn=Rule())
            return f(x, fn=Other())
    """,
    "parameter": """
        def run(x, fn):
            return f(x, fn=fn)
    """,
    "once": """
        y = f(1.0, fn=lambda v: v)
        def main():
            fn = lambda v: v
            for _ in range(9):
                f(1.0, fn=fn)
        if __name__ == "__main__":
            main()
    """,
    "in_traced_code_and_tests": """
        @jit
        def run(x):
            return f(x, fn=lambda v: v)
        def test_it():
            assert f(1.0, fn=lambda v: v) == 0.0
    """,
    "cached": """
        import functools
        @functools.lru_cache
        def run(k):
            return f(1.0, fn=lambda v: v + k)
    """,
    "nested_function_of_the_enclosing_one": """
        def make(k):
            def shift(v):
                return v + k
            def run(x):
                return f(x, fn=shift)
            return run
    """,
}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=f"{family}-{name}")
        for family, cases in (
            ("unhashable", UNHASHABLE),
            ("misfit", MISFITS),
            ("in_loop", IN_LOOP),
            ("fresh", FRESH),
        )
        for name, source in cases.items()
    ],
)
def test_statics(source: str) -> None:
    judge(HEAD + textwrap.dedent(source), only="JIT3")


@pytest.mark.parametrize(("limit", "expected"), [(4, ""), (3, "  # expect: JIT303"), (0, "  # expect: JIT303")])
def test_loop_limit_is_an_option(limit: int, expected: str) -> None:
    source = f"def run(x):\n    for k in (1, 2, 3, 4):\n        x = f(x, k){expected}\n    return x\n"
    judge(HEAD + source, Options(static_loop_limit=limit), only="JIT3")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "f(1.0, [1])",
            "JIT301 a list is passed as the static argument `n`, which has to be hashable: JAX raises; use a tuple",
        ),
        (
            "g = jit(lambda a, *, b: a, static_argnums=1)",
            (
                "JIT302 `static_argnums` has 1, but the lambda takes 1 parameter by position (the last is 0), so JAX raises "
                "when the jit is made; a keyword-only parameter needs `static_argnames='b'`"
            ),
        ),
        (
            "g = jit(lambda a, /: a, static_argnames='a')",
            (
                "JIT302 `static_argnames` has 'a', which the lambda takes by position only, so JAX raises when the jit is "
                "made; use `static_argnums=0`"
            ),
        ),
        (
            "g = jit(lambda a, b: a, static_argnames='c')",
            (
                "JIT302 `static_argnames` has 'c', but the lambda has no parameter of that name, so JAX raises when the jit "
                "is made; its parameters are `a`, `b`"
            ),
        ),
        (
            "for k in range(9):\n    f(1.0, k)",
            (
                "JIT303 the static argument `n` changes with `k` on each iteration of the loop in line 15, so JAX traces and "
                "compiles for each new value, 9 in all; make it a traced argument where the function allows it, or move the loop "
                "into the jitted function (`lax.fori_loop`, `lax.scan`)"
            ),
        ),
        (
            "def run(x):\n    return f(x, fn=lambda v: v)",
            (
                "JIT304 a lambda is made anew on each call of `run` and passed as the static argument `fn`, and it is equal to "
                "itself only, so JAX traces and compiles again each time; define the function once at module level and pass "
                "that"
            ),
        ),
    ],
    ids=["301", "302 number", "302 position", "302 name", "303", "304"],
)
def test_text(source: str, text: str) -> None:
    assert text_of(HEAD + source) == text
