"""What does not change a program's lifetimes does not change the verdict: names, layout, a scope around, an alias."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter

import pytest
import test_fates
import test_lifetimes
import test_targets
from sources import PRELUDE, Inline, all_findings

from flake8_jitcache.codes import CODES

ITEMS = [
    *test_fates.DROPPED, *test_fates.KEPT, *test_fates.PASSED, *test_fates.USED_OFTEN, *test_targets.FRESH, *test_targets.STABLE,
    *test_targets.SILENT, *test_lifetimes.FACTORIES, *test_lifetimes.PLACES,
]  # fmt: skip
# What a function around does not change: the places are in functions already.
IN_FUNCTIONS = [
    item
    for item in (*test_fates.DROPPED, *test_targets.FRESH, *test_targets.STABLE, *test_targets.SILENT)
    if item.text.startswith(PRELUDE) and not re.search(r"^(for|while|print|[a-z]+ = lambda)", item.text, re.MULTILINE)
]


def verdict(source: str) -> Counter[str]:
    """How often each code of JIT1xx that is on by default is found."""
    return Counter(f.code for f in all_findings(source) if f.code.startswith("JIT1") and CODES[f.code].default)


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", ITEMS, ids=about)
def test_rename(item: Inline) -> None:
    names = {
        "x": "position",
        "v": "value",
        "k": "key_",
        "add": "plus",
        "hot": "quantity",
        "fn": "callee",
        "Box": "Crate",
    }
    renamed = re.sub(r"\b(x|v|k|add|hot|fn|Box)\b", lambda match: names[match.group()], item.text)
    assert renamed != item.text
    assert verdict(renamed) == verdict(item.text)


@pytest.mark.parametrize("item", ITEMS, ids=about)
def test_reformat(item: Inline) -> None:
    assert verdict(ast.unparse(ast.parse(item.text))) == verdict(item.text)


@pytest.mark.parametrize("item", ITEMS, ids=about)
def test_more_space(item: Inline) -> None:
    code = re.sub(r"  # .*$", "", item.text, flags=re.MULTILINE)
    if 'f"' in code:
        pytest.skip("the space would be text")
    spread = re.sub(r"(?<=[(\[{])(?=[^)\]}\n])", "\n", code)
    assert verdict(spread) == verdict(item.text)


@pytest.mark.parametrize("item", IN_FUNCTIONS, ids=about)
def test_in_another_function(item: Inline) -> None:
    body = item.text.removeprefix(PRELUDE)
    wrapped = f"{PRELUDE}def enclosing():\n{textwrap.indent(body, '    ')}\n    return locals()\n"
    assert verdict(wrapped) == verdict(item.text)


@pytest.mark.parametrize("item", test_fates.DROPPED, ids=about)
def test_in_a_class(item: Inline) -> None:
    body = item.text.removeprefix(PRELUDE)
    functions = ast.parse(body).body
    if len(functions) != 1 or not isinstance(functions[0], ast.FunctionDef) or "hot(" in body.replace("def hot(", ""):
        pytest.skip("refers to what a class body would hide")
    wrapped = f"{PRELUDE}class Enclosing:\n    @staticmethod\n{textwrap.indent(body, '    ')}\n"
    assert verdict(wrapped) == verdict(item.text)


@pytest.mark.parametrize("item", [item for item in ITEMS if item.text.startswith(PRELUDE)], ids=about)
@pytest.mark.parametrize(
    ("statement", "spelling"),
    [
        ("compiled = jax.jit", "compiled"),
        ("from jax import jit as compiled", "compiled"),
        ("import jax as other", "other.jit"),
        ("backend = jax\nother = backend", "other.jit"),
    ],
)
def test_alias(item: Inline, statement: str, spelling: str) -> None:
    body = item.text.removeprefix(PRELUDE)
    aliased = f"{PRELUDE}{statement}\n\n\n" + re.sub(r"\bjax\.jit\b", spelling, body)
    assert verdict(aliased) == verdict(item.text)
