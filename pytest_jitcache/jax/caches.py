"""JAX's caches: what is in them, how it is dropped, and when they were cleared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pytest_jitcache.jax import names

__tracebackhide__ = True


def evict(fun: Any) -> None:
    """Drop everything that JAX's caches hold for a function, beyond what its `clear_cache()` drops."""
    util = names.module("jax._src.util")
    for name in ("_caches", "_weakref_lru_caches"):
        for cache in list(getattr(util, name, ())):
            drop = getattr(cache, "evict_weakref", None) or getattr(cache, "evict_function", None)
            if drop is not None:
                try:
                    drop(fun)
                except Exception:
                    continue


def may_be_warm(function: Any) -> bool:
    """Whether calls of a jitted function may be in its cache; True for what is not made by `jax.jit`."""
    try:
        return bool(function._cache_size())
    except Exception:
        return True


_cached_canary: Callable[[], object] | None = None


def cache_epoch() -> object:
    """An object that changes whenever JAX's caches are cleared (`jax.clear_caches()`)."""
    global _cached_canary
    if _cached_canary is None:
        util = names.module("jax._src.util")
        try:
            _cached_canary = util.cache(max_size=1, trace_context_in_key=False)(_new_object)
        except Exception:
            names.lose("this JAX does not let us notice jax.clear_caches()")
            _cached_canary = functools.cache(_new_object)
    return _cached_canary()


class _Epoch:
    __slots__ = ()


def _new_object() -> object:
    return _Epoch()
