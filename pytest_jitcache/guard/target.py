"""A function that the user has named: which traces are of it, and how it is made cold."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pytest_jitcache.identity import Unwrapped, is_jitted, unwrap
from pytest_jitcache.jax import caches
from pytest_jitcache.places import is_machinery

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only


@dataclass
class Target:
    """One function that the user named."""

    name: str
    function: Any
    jitted: bool
    fun: Any  # the function under the jit
    codes: frozenset[CodeType]
    unwrapped_layers: tuple[Any, ...]
    under: tuple[Any, ...]  # everything under the jit, from the outside in
    called: bool = False
    traced: bool = False
    heard: bool = False  # the start of a trace of it
    may_jit: bool = False  # a plain one that was called: a jitted function is in sight

    def matches(self, function: Unwrapped) -> bool:
        """Whether a traced callable is this function, or is wrapped around it."""
        if any(_same(o, self.fun) for o in function.objects) or any(function.objects[0] is o for o in self.under):
            return True
        if not function.found and function.layers and function.layers == self.unwrapped_layers[-len(function.layers) :]:
            return True
        return not self.jitted and bool(self.codes.intersection(function.codes))

    def clear(self) -> bool:
        """Make a jitted function start cold, with everything that it is wrapped around. Returns whether it was warm."""
        warm = caches.may_be_warm(self.function)
        caches.clear(self.function, unwrap(self.function).objects)
        return warm


def _instead(value: object) -> str:
    """What to pass in place of a value that is no function."""
    if isinstance(value, str):
        return f"pass the function itself, not its name {value!r}"
    if isinstance(value, list | tuple | set | frozenset):
        return "pass the functions one by one"
    return "pass the function itself, not the result of calling it"


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if (
        isinstance(b, types.MethodType | functools.partial)
        or type(a) is not type(b)
        or isinstance(b, types.FunctionType)
    ):
        return isinstance(b, types.MethodType) and type(a) is type(b) and bool(a == b)
    try:
        return _has_own_equality(type(b)) and bool(a == b)
    except Exception:
        return False


def _has_own_equality(kind: Any) -> bool:
    return kind.__eq__ is not object.__eq__


def target_of(function: Any) -> Target:
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"assert_traced_once takes functions, got {kind}: {_instead(function)}.")
    taken = unwrap(function)
    jitted = any(is_jitted(o) for o in taken.objects) and not _user_code_first(taken)
    fun: Any = function
    under: tuple[Any, ...] = ()
    if jitted:
        index = next(n for n, o in enumerate(taken.objects) if is_jitted(o))
        under = taken.objects[index + 1 :]
        fun = under[0] if under else function
    codes = frozenset(taken.codes[-1:])
    return Target(taken.name, function, jitted, fun, codes, taken.layers, under)


def _user_code_first(taken: Unwrapped) -> bool:
    for o in taken.objects:
        if isinstance(o, types.FunctionType):
            return not is_machinery(o.__code__.co_filename)
        if is_jitted(o):
            return False
    return False
