"""A test as pytest has it: its code, and an error at its line."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from typing import Any, NoReturn

import pytest

__tracebackhide__ = True


def code_of(item: pytest.Item) -> types.CodeType | None:
    """The code of the function that a test runs, below its decorators; None for what is no function."""
    function: Any = getattr(item, "obj", None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    function = inner or function
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def raise_in_test(item: pytest.Item, error: Exception) -> NoReturn:
    """Raise `error` so that the traceback ends at the line of the test that caused it, and not in a hook.

    A test without code of its own (a doctest, an item of another plugin) has no such line, and shows the text alone.
    """
    code = code_of(item)
    error.__traceback__ = None
    if code is None:
        raise _text_alone(error)
    first = code.co_firstlineno
    line = max(getattr(error, "line", 0), first)
    text = linecache.getline(code.co_filename, line).rstrip()
    start: dict[str, int] = {"lineno": line, "col_offset": len(text) - len(text.lstrip())}
    span: dict[str, Any] = {**start, "end_lineno": line, "end_col_offset": max(len(text), start["col_offset"] + 1)}
    body = ast.Raise(exc=ast.Name(id="error", ctx=ast.Load(), **span), cause=None, **span)
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef(
        name="test", args=empty, body=[body], decorator_list=[], returns=None, **{**span, "lineno": first}
    )
    if sys.version_info >= (3, 12):
        function.type_params = []
    module = compile(ast.Module(body=[function], type_ignores=[]), code.co_filename, "exec")
    at = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    at = at.replace(co_firstlineno=first, co_name=code.co_name)
    types.FunctionType(at, {"error": error, "__name__": getattr(getattr(item, "module", None), "__name__", "test")})()
    raise error


def _text_alone(error: Exception) -> Exception:
    """The same error, of its own type still, as pytest shows a `pytest.fail(..., pytrace=False)`: without frames."""
    kind = type(error)
    body = {"__module__": kind.__module__, "pytrace": False, "msg": str(error)}
    shown = type(kind.__name__, (kind, pytest.fail.Exception), body)
    alone: Exception = shown.__new__(shown, *error.args)
    alone.__dict__.update(error.__dict__)
    return alone
