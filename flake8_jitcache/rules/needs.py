"""What Python itself needs of a value that jitted code reads: a traced argument can't stand for it, a static one can."""

from __future__ import annotations

import ast

from flake8_jitcache.facts import known
from flake8_jitcache.facts.array_functions import ARRAY_ARGUMENTS, SHAPE_METHODS, STATIC_KEYWORDS, STATIC_POSITIONS
from flake8_jitcache.facts.module import Module

_SHAPES = "takes a shape, an axis or a length from"


def needed_by_python(module: Module, read: ast.expr) -> str | None:
    """What the code does with a value for which it certainly has to be known while tracing, as a verb; else None."""
    for child, parent in module.source.ancestors(read):
        field = module.source.fields[child]
        if isinstance(parent, ast.Call):
            return "calls" if field == "func" else _argument(module, child, parent, None)
        if isinstance(parent, ast.keyword):
            call = module.source.parents[parent]
            return _argument(module, child, call, parent.arg) if isinstance(call, ast.Call) else None
        if field in ("test", "ifs"):
            return "branches on"
        if isinstance(parent, ast.Compare):
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in parent.ops):
                return None
        elif not (
            isinstance(parent, (ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List))
            or (isinstance(parent, ast.Subscript) and field == "value")
        ):
            return None
    return None


def _argument(module: Module, node: ast.AST, call: ast.Call, keyword: str | None) -> str | None:
    dotted = module.names.dotted(call.func)
    position = call.args.index(node) if node in call.args else None
    if dotted == {"range"}:
        return "counts with"
    if dotted & known.TRANSFORMS and position == 0:
        return "calls"
    if dotted and all(name.startswith("jax.") for name in dotted):
        if keyword is not None:
            return _SHAPES if keyword in STATIC_KEYWORDS else None
        static = all(
            position in STATIC_POSITIONS.get(name, ())
            or (name.startswith("jax.numpy.") and position is not None and position >= ARRAY_ARGUMENTS.get(name, 99))
            for name in dotted
        )
        return _SHAPES if static else None
    if not dotted and isinstance(call.func, ast.Attribute) and call.func.attr in SHAPE_METHODS:
        return _SHAPES if keyword is None or keyword in STATIC_KEYWORDS else None
    return None
