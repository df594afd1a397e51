"""A twin of a jitted function that shares its caches, for the wrap form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_jitcache.jax import listening, names

__tracebackhide__ = True


def twin(function: Any, after_miss: Callable[[], None]) -> Any:
    """A twin of a jitted function with the same caches, which calls `after_miss` when a call of it was not found in them.

    A warm call of it runs no Python, as one of the function itself. None for what is not made by `jax.jit`.
    """
    try:
        state = function.__getstate__()
        miss = names.MISSED.texts[0]
        missed = state[miss]

        def after_miss_too(*args: Any, **kwargs: Any) -> Any:
            result = missed(*args, **kwargs)
            listening.settle_here()
            after_miss()
            return result

        kind: Any = type(function)
        made = kind.__new__(kind)
        made.__setstate__({**state, miss: after_miss_too})
        return made
    except Exception:
        return None
