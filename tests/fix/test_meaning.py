"""Fixes keep the meaning: each fixture is run before and after, with several inputs, and judged by the guard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from meaning import assert_same, assert_same_meaning, load, run

from flake8_jitcache.codes import CODES
from flake8_jitcache.fix.rounds import Outcome, repair
from flake8_jitcache.options import Options

HEAD = "import functools\n\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"


@dataclass
class Fixture:
    """A module, calls that show what it does, and text that the fixed module must have."""

    name: str
    source: str
    calls: list[str]
    has: str = ""
    unsafe: bool = False

    @property
    def text(self) -> str:
        return HEAD + dedent(self.source).strip("\n") + "\n"


def fix(text: str, *, unsafe: bool = False, codes: tuple[str, ...] = tuple(CODES)) -> Outcome:
    return repair(text, Options(), codes, unsafe=unsafe, shown=lambda text, finding: True)


FIXTURES = [
    Fixture(
        "nested_twice",
        """
        def outer(x, scale):
            def middle(shift):
                @jax.jit
                def inner(v):
                    return v * scale + shift
                return inner(x)
            return middle(1.0) + middle(2.0)
        """,
        ["outer(jnp.ones(3), 2.0)", "outer(jnp.ones(3), jnp.arange(3.0))"],
        "def _inner(v, scale, shift):",
    ),
    Fixture(
        "self_attributes",
        """
        class Filter:
            def __init__(self, rate, bias):
                self.rate = rate
                self.bias = bias

            def apply(self, x):
                return jax.jit(lambda v: v * self.rate + self.bias.mean())(x)

            def faster(self, x):
                self.rate = self.rate * 2
                return self.apply(x)

        FILTER = Filter(0.5, jnp.ones(2))
        """,
        ["Filter(0.5, jnp.ones(2)).apply(jnp.arange(3.0))", "Filter(3, jnp.ones(2)).faster(jnp.arange(3.0))"],
        unsafe=True,
    ),
    Fixture(
        "docstring_comments_and_blank_lines",
        '''
        def normalise(x, eps):
            """Outer."""

            # what it does
            @jax.jit
            def scaled(v):
                """Scale to one.

                    Deeper text.
                """
                # by the norm
                size = jnp.sqrt((v * v).sum())

                return v / (size + eps)  # eps against zero
                # the end

            return scaled(x)
        ''',
        ["normalise(jnp.arange(3.0), 1e-3)", "normalise(jnp.arange(3.0), 1)"],
        "# what it does\n@jax.jit\ndef _scaled(v, eps):",
    ),
    Fixture(
        "multi_line_strings_keep_their_content",
        '''
        def shout(x):
            @jax.jit
            def loud(v):
                text = """
            a
          b"""
                return v * len(text)

            return loud(x)
        ''',
        ["shout(jnp.arange(3.0))"],
    ),
    Fixture(
        "annotations_and_defaults",
        """
        def run(x: jax.Array, k: float) -> jax.Array:
            @jax.jit
            def step(v: jax.Array, n: int = 2, *, m: float = 0.5) -> jax.Array:
                return v * n * m + k

            return step(x) + step(x, m=1.5)
        """,
        ["run(jnp.ones(2), 3.0)"],
        "m: float = 0.5, k) -> jax.Array:",
    ),
    Fixture(
        "default_before_captured",
        """
        def run(x, k):
            return jax.jit(lambda v, n=2: v * n + k)(x)
        """,
        ["run(jnp.ones(2), 3.0)"],
        "_run(x, k=k)",
    ),
    Fixture(
        "variadic",
        """
        def total(xs, k):
            return jax.jit(lambda *vs: sum(vs) * k)(*xs)
        """,
        ["total([jnp.ones(2), jnp.arange(2.0)], 3.0)"],
        "_total(*xs, k=k)",
    ),
    Fixture(
        "static_argument_by_name",
        """
        def tile(x, times, scale):
            return jax.jit(lambda v, n: jnp.tile(v, n) * scale, static_argnames="n")(x, n=times)
        """,
        ["tile(jnp.ones(2), 3, 0.5)"],
        '@functools.partial(jax.jit, static_argnames="n")',
    ),
    Fixture(
        "static_argument_by_number",
        """
        def tile(x, times, scale):
            return jax.jit(lambda n, v: jnp.tile(v, n) * scale, static_argnums=(0,))(times, x)
        """,
        ["tile(jnp.ones(2), 3, 0.5)"],
        "def _tile(n, v, scale):",
    ),
    Fixture(
        "captured_length_is_static",
        """
        def head(x):
            n = x.shape[0] // 2
            return jax.jit(lambda v: v[:n] * n)(x)
        """,
        ["head(jnp.arange(4.0))", "head(jnp.arange(7.0))"],
        'static_argnames="n"',
    ),
    Fixture(
        "captured_literal_decides",
        """
        def pick(x):
            mode = "double"
            gain = 3.0

            @jax.jit
            def chosen(v):
                if mode == "double":
                    return v * 2 * gain
                return v

            return chosen(x)
        """,
        ["pick(jnp.arange(4.0))"],
        '@functools.partial(jax.jit, static_argnames="mode")',
    ),
    Fixture(
        "captured_flag",
        """
        def maybe(x, flip):
            @jax.jit
            def turned(v):
                return -v if flip else v

            return turned(x)
        """,
        ["maybe(jnp.ones(2), True)", "maybe(jnp.ones(2), False)"],
        "turned(x, flip=flip)",
        unsafe=True,
    ),
    Fixture(
        "optional_array",
        """
        def masked(x, mask=None):
            @jax.jit
            def kept(v):
                if mask is None:
                    return v
                return v * mask

            return kept(x)
        """,
        ["masked(jnp.ones(2))", "masked(jnp.ones(2), jnp.arange(2.0))"],
    ),
    Fixture(
        "tree_of_parameters",
        """
        def loss(params, x):
            return ((params["w"] @ x + params["b"]) ** 2).sum()

        def slope(params, x):
            return jax.jit(jax.grad(lambda p: loss(p, x)))(params)

        def value(params, x):
            return jax.jit(lambda v: loss(params, v))(x)
        """,
        [
            "slope({'w': jnp.ones((2, 3)), 'b': jnp.ones(2)}, jnp.arange(3.0))",
            "value({'w': jnp.ones((2, 3)), 'b': 1}, jnp.arange(3.0))",
        ],
        unsafe=True,
    ),
    Fixture(
        "gradient_of_nested_loss",
        """
        def fit(w, x, y):
            def loss(w):
                return ((x @ w - y) ** 2).mean()

            value, slope = jax.jit(jax.value_and_grad(loss))(w)
            return w - 0.1 * slope, value
        """,
        ["fit(jnp.ones(2), jnp.arange(6.0).reshape(3, 2), jnp.ones(3))"],
        "jax.jit(jax.value_and_grad(_loss))",
    ),
    Fixture(
        "several_calls_and_a_closure",
        """
        def both(x, y, k):
            scaled = jax.jit(lambda v: v * k)

            def again(z):
                return scaled(z) + 1

            return scaled(x) + again(y)
        """,
        ["both(jnp.ones(2), jnp.arange(2.0), 3.0)"],
    ),
    Fixture(
        "async_loop_and_comprehension",
        """
        async def gather(xs, k):
            out = []
            for i, x in enumerate(xs):
                out.append(jax.jit(lambda v: v * i + k)(x))
            return out + [jax.jit(lambda v: v - i)(x) for i, x in enumerate(xs)]
        """,
        ["gather([jnp.ones(2), jnp.arange(2.0)], 0.5)"],
    ),
    Fixture(
        "rebound_global_becomes_an_argument",
        """
        RATE = 1.0

        def faster():
            global RATE
            RATE *= 2

        def scaled(x):
            return jax.jit(lambda v: v * RATE)(x)

        def sequence(x):
            first = scaled(x)
            faster()
            return first, scaled(x)
        """,
        ["sequence(jnp.ones(2))"],
        "_scaled(x, RATE)",
    ),
    Fixture(
        "module_loop_variable",
        """
        out = []
        for k in range(3):
            out.append(jax.jit(lambda v: v * k)(jnp.ones(2)))
        """,
        ["out"],
    ),
    Fixture(
        "multi_line_lambda",
        """
        def mix(a, b, k):
            return jax.jit(
                lambda u, v:  # two of them
                u * k
                + v
            )(
                a,
                b,
            )
        """,
        ["mix(jnp.ones(2), jnp.arange(2.0), 3.0)"],
    ),
    Fixture(
        "trailing_comma_and_comment_in_call",
        """
        def mix(a, k):
            f = jax.jit(lambda u: u * k)  # fast
            return f(
                (a),  # the array
            )
        """,
        ["mix(jnp.ones(2), 3.0)"],
        "(a), k,  # the array",
    ),
    Fixture(
        "partial_by_keyword",
        """
        def power(x, *, n, scale):
            for _ in range(n):
                x = x * scale
            return x

        def run(x, scale):
            return jax.jit(functools.partial(power, n=3, scale=scale))(x)
        """,
        ["run(jnp.ones(2), 2.0)", "run(jnp.ones(2), 3)"],
        'static_argnames="n"',
    ),
    Fixture(
        "partial_of_literals",
        """
        def power(x, n):
            return x**n

        def run(x):
            return jax.jit(functools.partial(power, n=3))(x)
        """,
        ["run(jnp.arange(3.0))"],
        "jax.jit(functools.partial(power, n=3))",
    ),
    Fixture(
        "cached_factory",
        """
        def make(n):
            @jax.jit
            def power(x):
                return x**n
            return power

        def run(x):
            return make(2)(x) + make(3)(x)
        """,
        ["run(jnp.arange(3.0))"],
        "@functools.cache\ndef make(n):",
    ),
    Fixture(
        "weak_types_and_integers",
        """
        def run(x, n, t):
            return jax.jit(lambda v: (v * n, v + t, v**n))(x)
        """,
        ["run(jnp.arange(3), 2, 1)", "run(jnp.arange(3), 2, 1.5)", "run(np.arange(3.0), 2, True)"],
    ),
    Fixture(
        "in_with_try_and_match",
        """
        def run(x, k, kind):
            with jax.default_matmul_precision("float32"):
                try:
                    match kind:
                        case "a":
                            return jax.jit(lambda v: v * k)(x)
                        case other:
                            return jax.jit(lambda v: v + k)(x)
                finally:
                    pass
        """,
        ["run(jnp.ones(2), 2.0, 'a')", "run(jnp.ones(2), 2.0, 'b')"],
    ),
    Fixture(
        "method_of_nested_class_and_dunder_call",
        """
        class Layer:
            class Inner:
                def __call__(self, x, k):
                    return jax.jit(lambda v: v * k)(x)
        """,
        ["Layer.Inner()(jnp.ones(2), 3.0)"],
        "def _inner(v, k):",
    ),
    Fixture(
        "name_is_taken",
        """
        _scaled = 3

        def scaled(x):
            return jax.jit(lambda v: v * _scaled)(x)
        """,
        ["scaled(jnp.ones(2))"],
        "def _scaled_2(v):",
    ),
    Fixture(
        "loop_variable_used_after_rebinding",
        """
        def run(x, k):
            k = k + 1
            f = jax.jit(lambda v: v * k)
            out = f(x)
            k = 100
            return out * k
        """,
        ["run(jnp.ones(2), 1.0)"],
    ),
    Fixture(
        "jitted_once_in_init",
        """
        class Model:
            def __init__(self, w):
                self.w = w
                # that is all

            def predict(self, x):
                return self.w @ x

            def score(self, x):
                fast = jax.jit(self.predict)
                return fast(x).sum()

        MODEL = Model(jnp.ones((2, 3)))
        """,
        ["MODEL.score(jnp.arange(3.0))"],
        "        # that is all\n        self._jitted_predict = jax.jit(self.predict)\n",
        unsafe=True,
    ),
    Fixture(
        "lines_of_a_wrapper_begin_at_the_margin",
        """
        def loss(x):
            return (x**2).sum()

        class Model:
            def step(self, x):
                return jax.jit(
                    jax.grad(
                        loss,
                    )
                )(x)
        """,
        ["Model().step(jnp.arange(3.0))"],
        "_grad_loss = jax.jit(\n    jax.grad(\n        loss,\n    )\n)\n",
    ),
    Fixture(
        "shapes_are_static",
        """
        def run(x, n, spec):
            return jax.jit(lambda v: (jnp.zeros(n), jnp.full(n + 1, 2.0), jnp.einsum(spec, v, v)))(x)
        """,
        ["run(jnp.ones((2, 2)), 3, 'ij,jk->ik')", "run(jnp.ones((2, 2)), 4, 'ij,jk->ki')"],
        'static_argnames=("n", "spec")',
        unsafe=True,
    ),
    Fixture(
        "lengths_of_loops_are_static",
        """
        def run(x, n):
            def loop(v):
                scanned = jax.lax.scan(lambda c, _: (c * 2, c), v, None, length=n)[0]
                return jax.lax.fori_loop(0, n, lambda i, c: c + i * scanned, v).sum()

            return jax.jit(jax.grad(loop))(x)
        """,
        ["run(jnp.ones(2), 3)"],
        'static_argnames="n"',
        unsafe=True,
    ),
    Fixture(
        "arrays_in_a_carry_and_in_second_place",
        """
        def run(x, k, rate, key):
            def go(v):
                (total, _), _ = jax.lax.scan(lambda c, _: ((c[0] + c[1], c[1]), None), (v, k), None, length=3)
                return total * jax.random.bernoulli(key, rate, (2,)) + jnp.roll(v, 1)
            return jax.jit(go)(x)
        """,
        ["run(jnp.ones(2), jnp.ones(2), 0.5, jax.random.key(0))"],
        "def _go(v, k, key, rate):",
        unsafe=True,
    ),
    Fixture(
        "powers_that_are_the_same_traced",
        """
        def run(x, k, db):
            return jax.jit(lambda v: v * k**2 + 10 ** (db / 20) + 0.5**k + v**k + k**-0.5)(x)
        """,
        ["run(jnp.ones(2), 3, 6)", "run(jnp.ones(2), 3.5, 6.5)"],
        "def _run(v, k, db):",
    ),
    Fixture(
        "array_that_is_updated",
        """
        def run(x, start):
            return jax.jit(lambda v: v + start.at[0].set(5.0))(x)
        """,
        ["run(jnp.ones(2), jnp.zeros(2))"],
        "def _run(v, start):",
    ),
    Fixture(
        "sum_over_a_list_of_arrays",
        """
        def run(x, terms):
            return jax.jit(lambda v: v * sum(terms))(x)
        """,
        ["run(jnp.ones(2), [1.0, 2.0])", "run(jnp.ones(2), [jnp.ones(2)])"],
        "def _run(v, terms):",
        unsafe=True,
    ),
    Fixture(
        "lowered_and_compiled",
        """
        def run(x, k):
            return jax.jit(lambda v: v * k).lower(x).compile()(x)
        """,
        ["run(jnp.ones(2), jnp.float32(3.0))"],
        ".lower(x, k).compile()(x, k)",
    ),
]


@pytest.mark.parametrize("fixture", FIXTURES, ids=[fixture.name for fixture in FIXTURES])
def test_fixed_module_means_the_same(fixture: Fixture, tmp_path: Path) -> None:
    done = fix(fixture.text, unsafe=fixture.unsafe)
    assert done.left == []
    assert done.fixed
    assert fixture.has in done.text
    assert_same_meaning(fixture.text, done.text, fixture.calls, tmp_path)
    assert fix(done.text, unsafe=fixture.unsafe).text == done.text


def test_a_function_bound_to_a_function_of_jax_is_static(tmp_path: Path) -> None:
    source = """
    def double(x):
        return 2 * x

    def run(tree, fn):
        return jax.jit(functools.partial(jax.tree.map, fn))(tree)
    """
    before = HEAD + dedent(source).strip("\n") + "\n"
    after = fix(before, unsafe=True).text
    assert "jax.jit(jax.tree.map, static_argnums=0)" in after
    call = "run({'a': jnp.ones(2)}, double)"
    assert_same(run(load(before, tmp_path), call), run(load(after, tmp_path), call))


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.unsafe], ids=[f.name for f in FIXTURES if f.unsafe])
def test_what_assumes_something_needs_unsafe(fixture: Fixture) -> None:
    done = fix(fixture.text)
    assert any(left.reason.startswith("needs --unsafe, which assumes that ") for left in done.left)
