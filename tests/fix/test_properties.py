"""Any enclosing function, with any captures, nesting and call form, means the same once it is fixed."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meaning import assert_same_meaning
from test_meaning import HEAD, fix

# What the function around a jit may give it: parameters, locals, an attribute, a global, a loop's variable.
CAPTURES = ["a", "b", "c", "self.rate", "BASE", "i"]
SETUP = "c = a + b\n"

LEAVES = st.sampled_from(["v", "v", "w", *CAPTURES, "2.0", "3"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda e: f"jnp.sin({e})"),
        inner.map(lambda e: f"jnp.tanh(\n    {e}\n)"),
        st.tuples(inner, inner).map(lambda p: f"jnp.where({p[0]} > 0.5, {p[1]}, v)"),
        inner.map(lambda e: f"helper({e})"),
        inner.map(lambda e: f"(-{e})"),
    ),
    max_leaves=6,
)
HELPER = "BASE = 0.75\n\n\ndef helper(x, scale=2):\n    y = x * scale\n    return y + BASE\n"


@st.composite
def parameters(draw: st.DrawFn) -> tuple[str, str]:
    """The parameters of the jitted function, and how it is called."""
    return draw(
        st.sampled_from(
            [
                ("v, w", "x, y"),
                ("v, w", "x, w=y"),
                ("v, w", "*(x, y)"),
                ("v, w", "x, **{'w': y}"),
                ("v, w=1.5", "x"),
                ("v, w=1.5", "x, y"),
                ("v, *, w", "x, w=y"),
                ("v, /, w", "x, y"),
                ("*vs, v, w=0.5", "x, v=y"),
            ]
        )
    )


@st.composite
def modules(draw: st.DrawFn) -> str:
    """A module with a method `Outer(rate).run(x, y, a, b)` that jits something anew on each call."""
    given_, passed = draw(parameters())
    body = "(v + " + draw(EXPRESSIONS) + ").sum()"
    form = draw(st.sampled_from(["lambda", "named lambda", "variable", "two calls", "decorated", "jitted def", "grad"]))
    if form == "grad" and not given_.startswith("v, w"):
        form = "decorated"
    call = f"inner({passed})"
    lambda_ = f"lambda {given_}: {body}"
    definition = (
        f"def inner({given_}):\n    '''What it does.'''\n    out = {indent(body, '    ').strip()}\n    return out\n"
    )
    if form == "lambda":
        code = f"result = jax.jit({lambda_})({passed})\n"
    elif form == "named lambda":
        code = f"raw = {lambda_}\ninner = jax.jit(raw)\nresult = {call}\n"
    elif form == "variable":
        code = f"inner = jax.jit(\n    {indent(lambda_, '    ').strip()}\n)  # once\nresult = {call}\n"
    elif form == "two calls":
        code = f"inner = jax.jit({lambda_})\nresult = {call} + {call}\n"
    elif form == "decorated":
        code = f"\n# jitted\n@jax.jit\n{definition}\nresult = {call}\n"
    elif form == "jitted def":
        code = f"{definition}\nfast = jax.jit(inner)\nresult = fast({passed})\n"
    else:
        code = f"\n@jax.jit\n{definition}\nresult = jax.grad(inner)({passed}).sum()\n"
    around = draw(st.sampled_from(["plain", "loop", "if", "with", "nested", "try"]))
    total = "total = 0.0\ni = 1\n"
    if around == "loop":
        code = total + "for i in range(2):\n" + indent(code + "total = total + result\n", "    ")
    elif around == "if":
        code = total + "if b is not None:\n" + indent(code + "total = result\n", "    ")
    elif around == "with":
        code = total + "with jax.named_scope('here'):\n" + indent(code + "total = result\n", "    ")
    elif around == "try":
        code = total + "try:\n" + indent(code + "total = result\n", "    ") + "finally:\n    pass\n"
    elif around == "nested":
        code = total + "def deeper(x):\n" + indent(code + "return result\n", "    ") + "total = deeper(x)\n"
    else:
        code = total + code + "total = result\n"
    method = "def run(self, x, y, a, b):\n" + indent(SETUP + code + "return total\n", "    ")
    cls = "class Outer:\n" + indent("def __init__(self, rate):\n    self.rate = rate\n\n" + method, "    ")
    return f"{HEAD}{HELPER}\n\n{cls}"


CALLS = [
    "Outer(0.5).run(jnp.arange(3.0), jnp.ones(3), 2.0, 3)",
    "Outer(jnp.float32(1.5)).run(jnp.arange(3.0), jnp.ones(3), jnp.arange(3.0), np.float32(0.25))",
]


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(text=modules())
def test_fixed_module_means_the_same(text: str, tmp_path: Path) -> None:
    done = fix(text)
    assert done.left == []
    assert done.fixed.total() == 1
    assert fix(done.text).text == done.text
    assert_same_meaning(text, done.text, CALLS, tmp_path)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(text=modules(), newline=st.sampled_from(["\n", "\r\n"]))
def test_fix_is_a_fixpoint_and_keeps_what_it_does_not_touch(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    done = fix(text)
    assert done.left == []
    assert fix(done.text).text == done.text
    head = (HEAD + HELPER).replace("\n", newline)
    assert done.text.startswith(head)
    assert done.text.count("\n") == done.text.count(newline)
