"""The marker form: `@pytest.mark.traced_once("module.function")`."""

from __future__ import annotations

import ast
import functools
import importlib
import linecache
import sys
import types
from typing import Any, NoReturn

import pytest

from pytest_jitcache.guard import Guard

__tracebackhide__ = True


class MarkedBlock:
    """One marker on one test: its call phase is the block."""

    def __init__(self, mark: pytest.Mark, item: pytest.Item) -> None:
        functions = tuple(resolve(name, item) for name in mark.args)
        try:
            self.guard = Guard(functions, **mark.kwargs)
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            wrong = str(error).rpartition(" ")[2]
            raise TypeError(
                f"the mark traced_once has no argument {wrong}; it takes max_traces, per, max_compiles and info."
            ) from None
        self.code = _code_of(item)

    def start(self) -> None:
        self.guard.start(None, home=self.code)

    def _stop(self) -> None:
        self.guard.stop()

    def judge(self) -> None:
        self.guard.judge()


def resolve(name: object, item: pytest.Item) -> Any:
    """The function that a dotted name means; a module may be a test module, also by its last part."""
    if not isinstance(name, str):
        raise TypeError(f"the mark traced_once takes dotted names such as 'package.module.function', got {name!r}.")
    own = getattr(item, "module", None)
    parts = name.split(".")
    for length in range(len(parts) - 1, -1, -1):
        module_name, attributes = ".".join(parts[:length]), parts[length:]
        module: Any = None
        if own is not None and (len(parts) == 1 or (module_name and f".{own.__name__}".endswith(f".{module_name}"))):
            module = own
        elif module_name:
            module = sys.modules.get(module_name)
            if module is None:
                try:
                    module = importlib.import_module(module_name)
                except ModuleNotFoundError as error:
                    if error.name and module_name.startswith(error.name):
                        continue
                    raise
        if module is None:
            continue
        try:
            return functools.reduce(getattr, attributes, module)
        except AttributeError:
            if length == len(parts) - 1:
                where = f"the module {module.__name__}"
                raise LookupError(
                    f"the mark traced_once names {name!r}, but {where} has no {'.'.join(attributes)!r}."
                ) from None
    raise LookupError(f"the mark traced_once names {name!r}, which cannot be imported.")


def _code_of(item: pytest.Item) -> types.CodeType | None:
    function: Any = getattr(item, "obj", None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    function = inner or function
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def test_frame(item: pytest.Item, error: Exception) -> NoReturn:
    """Raise `error` so that the traceback ends at the line of the test that caused it, and not in a hook."""
    code = _code_of(item)
    error.__traceback__ = None
    if code is None:
        raise error
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


test_frame.__test__ = False  # type: ignore[attr-defined]
