"""The marker form: `@pytest.mark.traced_once("module.function")`."""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_jitcache.guard import NAMES, Guard, Options
from pytest_jitcache.items import code_of, raise_in_test
from pytest_jitcache.places import OURS

__tracebackhide__ = True


class MarkedBlock:
    """One marker on one test: its call phase is the block."""

    def __init__(self, mark: pytest.Mark, item: pytest.Item) -> None:
        wrong = [name for name in mark.kwargs if name not in NAMES]
        if wrong:
            raise TypeError(
                f"the mark traced_once has no argument {wrong[0]!r}; it takes {', '.join(NAMES[:-1])} and {NAMES[-1]}."
            )
        self.guard = Guard(tuple(resolve(name, item) for name in mark.args), Options(**mark.kwargs))
        self.code = code_of(item)

    def start(self) -> None:
        self.guard.start(None, home=self.code)

    def _stop(self) -> None:
        self.guard.stop()

    def judge(self) -> None:
        self.guard.judge()


def blocks_of(item: pytest.Item, marks: Iterable[pytest.Mark]) -> list[MarkedBlock]:
    """The blocks of the marks of a test. A mark that is wrong raises at the line of the test that bears it."""
    try:
        return [MarkedBlock(mark, item) for mark in marks]
    except (TypeError, ValueError, LookupError) as error:
        frames = list(traceback.walk_tb(error.__traceback__))
        if frames[-1][0].f_code.co_filename.startswith(OURS):
            raise_in_test(item, error)
        raise  # an error of the module that the mark names


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
