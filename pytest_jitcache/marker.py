"""The marker form: `@pytest.mark.traced_once("module.function")`."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any, NoReturn

import pytest

from pytest_jitcache.errors import RetraceError
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

    def stop(self) -> None:
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
        if own is not None and (not module_name or f".{own.__name__}".endswith(f".{module_name}")):
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
            if length == len(parts) - 1 or not module_name or len(parts) == 1:
                where = f"the module {module.__name__}"
                raise LookupError(
                    f"the mark traced_once names {name!r}, but {where} has no {'.'.join(attributes)!r}."
                ) from None
    raise LookupError(f"the mark traced_once names {name!r}, which cannot be imported.")


def _code_of(item: pytest.Item) -> types.CodeType | None:
    function = getattr(item, "obj", None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    function = inner or function
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def test_frame(item: pytest.Item, error: RetraceError) -> NoReturn:
    """Raise `error` so that the traceback ends at the line of the test that caused it, and not in a hook."""
    code = _code_of(item)
    error.__traceback__ = None
    if code is None:
        raise error
    line = max(getattr(error, "line", 0), code.co_firstlineno)
    gap = line - code.co_firstlineno
    source = "def at(error):" + ("\n" * gap + " " if gap else " ") + "raise error"
    module = compile(source, code.co_filename, "exec")
    at = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    at = at.replace(co_firstlineno=code.co_firstlineno, co_name=code.co_name)
    types.FunctionType(at, {"__name__": getattr(getattr(item, "module", None), "__name__", "test")})(error)
    raise error


test_frame.__test__ = False  # type: ignore[attr-defined]
