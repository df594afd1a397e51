"""Whether what a method reads on its object stays as `__init__` sets it: the rules' remedies and the fixer both ask."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import functions_around


def assigned_later(module: Module, owner: ast.ClassDef, reader: ast.AST) -> ast.Attribute | None:
    """The first place outside of `__init__` that assigns an attribute of a class's objects which some code, or a method that
    it calls, reads."""
    seen: set[ast.AST] = set()
    pending: list[ast.AST] = [reader]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for node in ast.walk(current):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            if module.definitions.class_behind(node.value) is not owner:
                continue
            inner = module.definitions.method(owner, node.attr)
            if inner is not None:
                pending.append(inner)
                continue
            for other in module.source.attributes[node.attr]:
                if isinstance(other.ctx, ast.Load):
                    continue
                around = functions_around(module.source, other)
                if not (around and getattr(around[0], "name", "") == "__init__"):
                    return other
    return None
