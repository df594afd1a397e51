"""Good names for what moves to module level."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from flake8_jitcache.facts.places import class_of, functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS
from flake8_jitcache.fix.document import Document

# Names that say that something is a function, or jitted, but not which.
_EMPTY = frozenset(
    "f fn fun func function g h run fast quick jit jitted jit_fn jitfn jit_f fjit compiled comp call out output outputs res "
    "result results ret rv val value values tmp temp obj item new x y z speedup fast_fn wrapped wrapper inner".split()
)


def candidates(document: Document, creation: ast.expr, expression: ast.expr | None) -> list[str]:
    """Names for a jitted expression, best first: the variable it is bound to, the variable that gets its result, the
    function that returns its result, the function around it, what it computes."""
    source = document.source
    found: list[str] = []
    parent = source.parents[creation]
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        found += _targets(parent)
    statement = source.statement(creation)
    around = [f for f in functions_around(source, creation) if isinstance(f, DEFINITIONS)]
    enclosing: list[str] = []
    if around:
        owner = class_of(source, around[0])
        dunder = around[0].name.startswith("__")
        enclosing = [_snake(owner.name) if dunder and owner is not None else around[0].name]
    if isinstance(parent, ast.Call) and parent.func is creation and source.parents[parent] is statement:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found += _targets(statement)
        elif isinstance(statement, ast.Return):
            found += enclosing
    elif isinstance(statement, ast.Return):
        found += enclosing
    found = telling(found)
    found += enclosing
    if expression is not None:
        found += _computed(expression)
    return found or ["jitted"]


def telling(names: Iterable[str]) -> list[str]:
    """Those of the names that say what a function does."""
    return [name for name in names if len(name.strip("_")) > 1 and name.strip("_").lower() not in _EMPTY]


def choose(document: Document, names: Iterable[str], taken: set[str], prefix: str = "") -> str:
    """The first of the names, made private, that nothing in the file uses yet; else the first with a number. The name
    is added to `taken`."""
    wanted = [f"_{prefix}{name.strip('_')}" for name in names if name.strip("_")]
    used = document.identifiers | taken
    for name in wanted:
        if name not in used and name.isidentifier():
            taken.add(name)
            return name
    number = 2
    while f"{wanted[0]}_{number}" in used:
        number += 1
    taken.add(f"{wanted[0]}_{number}")
    return f"{wanted[0]}_{number}"


def _targets(statement: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [t.id if isinstance(t, ast.Name) else t.attr for t in targets if isinstance(t, (ast.Name, ast.Attribute))]


def _computed(node: ast.expr) -> list[str]:
    """What an expression computes: the last part of the outermost call in it."""
    if isinstance(node, ast.Lambda):
        node = node.body
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return [name] if len(name) > 2 and not name.startswith("_") else []
    return []


# `MoE`, `LoRA`: a short word and the capitals that end it. Then `HTTP` before `Server`, `Conv2D`, `Layer`, numbers.
_WORDS = re.compile(
    r"[A-Z][a-z][A-Z]{1,2}(?=[A-Z][a-z]|[^A-Za-z]|$)|[A-Z]+(?![a-z])|[A-Z]?[a-z]+(?:[0-9]+[A-Z](?![a-z])|[0-9]*)|[0-9]+"
)


def _snake(name: str) -> str:
    """A class's name as a function has it; capitals that stand together stay together."""
    return "_".join(_WORDS.findall(name)).lower()
