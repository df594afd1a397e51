"""JAX's caches: what is in them, how it is dropped, and when they were cleared."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from pytest_jitcache.jax import names
from pytest_jitcache.places import is_machinery

__tracebackhide__ = True


def clear(function: Any, parts: Iterable[Any]) -> None:
    """Make a jitted function start cold.

    Args:
        parts: what it is wrapped around, from the outside in.
    """
    import jax

    wrappers = (function, *parts)
    inner = [getattr(one, name, None) for one in wrappers for name in names.INNER_JITS]
    for one in (*wrappers, *inner):
        empty = names.CLEAR.of(one)
        try:
            if callable(empty):
                empty()
            elif isinstance(one, types.FunctionType) and not is_machinery(one.__code__.co_filename):
                names.CLEAR.of(jax.jit(one))()
                evict(one)
        except Exception:
            continue
    _forget_filter_pmap(wrappers)


def _forget_filter_pmap(functions: Iterable[Any]) -> None:
    """equinox has a cache of its own in front of that of a pmap, by function."""
    if names.EQUINOX_PMAPS.where not in sys.modules:
        return
    try:
        (cache,) = (
            cell.cell_contents
            for cell in names.EQUINOX_PMAPS.find().__closure__
            if isinstance(cell.cell_contents, weakref.WeakKeyDictionary)
        )
    except (TypeError, ValueError, AttributeError):
        return
    for one in functions:
        if isinstance(one, types.FunctionType):
            cache.pop(one, None)


def evict(fun: Any) -> None:
    """Drop everything that JAX's caches hold for a function, beyond what its `clear_cache()` drops."""
    util = names.module(names.UTIL)
    for name in names.ALL_CACHES:
        for cache in list(getattr(util, name, ())):
            drop = names.EVICT.of(cache)
            if drop is not None:
                try:
                    drop(fun)
                except Exception:
                    continue


def may_be_warm(function: Any) -> bool:
    """Whether calls of a jitted function may be in its cache; True for what is not made by `jax.jit`."""
    try:
        return bool(names.CACHE_SIZE.of(function)())
    except Exception:
        return True


_cached_canary: Callable[[], object] | None = None


def cache_epoch() -> object:
    """An object that changes whenever JAX's caches are cleared (`jax.clear_caches()`)."""
    global _cached_canary
    if _cached_canary is None:
        try:
            _cached_canary = names.CACHE.find()(max_size=1, trace_context_in_key=False)(_new_object)
        except Exception:
            names.lose("this JAX does not let us notice jax.clear_caches()")
            _cached_canary = functools.cache(_new_object)
    return _cached_canary()


class _Epoch:
    __slots__ = ()


def _new_object() -> object:
    return _Epoch()
