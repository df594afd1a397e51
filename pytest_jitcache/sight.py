"""Whether a plain function may reach a jitted one, so that its silence may mean that all is warm."""

from __future__ import annotations

import builtins
import inspect
import os
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_jitcache.identity import is_jitted, nested_codes
from pytest_jitcache.places import in_jax, is_library

_MAKERS = {
    "jit", "pmap", "pjit", "filter_jit", "filter_pmap", "scan", "while_loop", "fori_loop", "cond", "switch", "map",
    "shard_map",
}  # fmt: skip
_DEPTH = 6  # calls that are followed
_ITEMS = 20  # of a container that are looked at


def jit_in_sight(function: Any, arguments: Iterable[Any] = ()) -> bool:
    """Whether a function may reach a jitted one: by its globals, its closure, its instance, its arguments, or what it calls.

    Args:
        arguments: what it was called with.
    """
    return _reaches(function, tuple(arguments), 0, set())


def _reaches(function: Any, arguments: tuple[Any, ...], depth: int, seen: set[int]) -> bool:
    if id(function) in seen or depth > _DEPTH:
        return False
    seen.add(id(function))
    if is_jitted(function):
        return not in_jax(_file(function))
    if isinstance(function, types.MethodType):
        return _reaches(function.__func__, (function.__self__, *arguments), depth + 1, seen)
    inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
    if inner is not None and inner is not function and _reaches(inner, arguments, depth + 1, seen):
        return True
    code = getattr(function, "__code__", None)
    if code is None:
        call = getattr(type(function), "__call__", None)  # noqa: B004
        return isinstance(call, types.FunctionType) and _reaches(call, (function, *arguments), depth + 1, seen)
    if is_library(code.co_filename) and depth:
        return False
    known = [*arguments, *_captured(function)]
    for current in [code, *nested_codes(code)]:
        for name in current.co_names:
            value = getattr(function, "__globals__", {}).get(name, getattr(builtins, name, None))
            if name in _MAKERS and (value is None or _of_jax(value)):
                return True
            if value is not None and not isinstance(value, types.ModuleType):
                known.append(value)
    names = {name for current in [code, *nested_codes(code)] for name in current.co_names}
    return any(_reaches(one, (), depth + 1, seen) for held in known for one in _callables(held, names))


def _captured(function: Any) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue


def _callables(held: Any, names: set[str], level: int = 0) -> Iterator[Any]:
    """What may be called of a value: itself, its items, and its attributes of the names that the code reads."""
    if level > 3:
        return
    if isinstance(held, Mapping):
        held = tuple(held.values())
    if isinstance(held, tuple | list | set | frozenset):
        for item in list(held)[:_ITEMS]:
            yield from _callables(item, names, level + 1)
        return
    if callable(held):
        yield held
    if isinstance(held, type | types.FunctionType) or is_jitted(held):
        return
    for name in names:
        try:
            value = inspect.getattr_static(held, name)  # runs no property
        except AttributeError:
            continue
        if isinstance(value, types.FunctionType):
            yield types.MethodType(value, held)
        else:
            yield from _callables(value, names, level + 1)


def _of_jax(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] in ("jax", "equinox", "flax")


def _file(function: Any) -> str:
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return os.path.abspath(code.co_filename) if code is not None else ""
