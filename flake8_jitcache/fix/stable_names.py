"""Which module-level names hold the same thing for as long as the program runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from flake8_jitcache.facts import known
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import place_of

MUTATORS = known.ADDERS | {"fill", "sort", "reverse", "remove", "clear", "pop", "popitem", "resize", "put", "itemset"}


def is_constant(module: Module, name: str) -> bool:
    """Whether a module-level name is bound at import alone and what it holds is not changed in this file."""
    source = module.source
    bindings = source.module.bindings.get(name, [])
    for binding in bindings:
        if source.scopes[binding.node].function is not None and binding.kind != "def":
            return False  # rebound by a function, through `global`
        if binding.kind not in ("import", "def", "class", "assign", "unpack"):
            return False
        if place_of(source, binding.node).loop is not None or place_of(source, binding.node).function is not None:
            return False
    kinds = {binding.kind for binding in bindings}
    if len(bindings) > 1 and kinds & {"assign", "unpack"}:
        return False
    if not kinds <= {"assign", "unpack"}:
        return True
    return not is_mutated(module, source.references.get((source.module, name), []))


def is_mutated(module: Module, loads: Iterable[ast.Name]) -> bool:
    """Whether one of the loads of a name is there to change what it holds: `x[i] = v`, `x.a = v`, `x.append(v)`."""
    source = module.source
    for load in loads:
        node: ast.AST = load
        parent = source.parents.get(node)
        while isinstance(parent, (ast.Subscript, ast.Attribute)) and parent.value is node:
            if not isinstance(parent.ctx, ast.Load):
                return True
            node, parent = parent, source.parents.get(parent)
            if isinstance(node, ast.Attribute) and isinstance(parent, ast.Call) and parent.func is node:
                if node.attr in MUTATORS and not is_functional(node.value):
                    return True
                break
    return False


def is_functional(receiver: ast.expr) -> bool:
    """Whether a method of this receiver makes a new array: `x.at[i].set(v)`."""
    return (
        isinstance(receiver, ast.Subscript)
        and isinstance(receiver.value, ast.Attribute)
        and receiver.value.attr == "at"
    )
