"""What Python itself needs of a value that jitted code reads: a traced argument can't stand for it, a static one can."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.flows import Kind
from flake8_jitcache.facts.module import Module

_VERBS: dict[Kind, str] = {
    "called": "calls",
    "method": "calls a method of",
    "test": "branches on",
    "count": "counts with",
    "shape": "takes a shape, an axis or a length from",
    "number": "makes a number of",
    "index": "picks an item with",
}


def needed_by_python(module: Module, read: ast.expr) -> str | None:
    """What the code does with a value for which it certainly has to be known while tracing, as a verb; else None."""
    for end in module.flows.ends(read):
        if end.kind in _VERBS:
            return _VERBS[end.kind]
    return None
