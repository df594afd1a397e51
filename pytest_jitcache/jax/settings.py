"""JAX's settings: those that are part of the key of its trace cache, and whether jit is off."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pytest_jitcache.jax import names

__tracebackhide__ = True


@functools.cache
def _settings() -> tuple[tuple[str, Any], ...]:
    """The settings of JAX by name: everything in these modules that holds a value and can be swapped for a time."""
    found = {}
    for module in map(names.module, names.SETTINGS):
        for name in dir(module):
            value = getattr(module, name, None)
            kind = type(value)
            if hasattr(kind, "value") and hasattr(kind, "swap_local" if hasattr(kind, "swap_local") else "_set"):
                found[name] = value
    return tuple(found.items())


_snapshots: dict[Any, tuple[tuple[str, str], ...]] = {}


def settings() -> tuple[tuple[str, str], ...]:
    """JAX's settings by name, one snapshot for each state of what is part of the key of the trace cache.

    Parts of that key that have no name follow as "#0", "#1", ... Empty where JAX does not say.
    """
    context = names.CONTEXT.find()
    if context is None:
        return ()
    try:
        key = context()
        known = _snapshots.get(key)
        if known is None:
            if len(_snapshots) > 256:
                _snapshots.clear()
            named = [(name, _text(state)) for name, state in _settings()]
            rest = [(f"#{n}", _cut(part)) for n, part in enumerate(key)] if isinstance(key, tuple) else []
            known = _snapshots[key] = (*named, *rest)
        return known
    except Exception:
        return ()


def _text(state: Any) -> str:
    try:
        return _cut(state.value)
    except Exception:
        return "?"


def _cut(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:79] + "…"


def jit_is_disabled() -> bool:
    """Whether jit is switched off on this thread."""
    import jax

    try:
        return bool(names.DISABLE_JIT.find().value)
    except Exception:
        return bool(getattr(jax.config, "jax_disable_jit", False))


@functools.cache
def hook_disable_jit(switched: Callable[[], None]) -> None:
    """Have `switched` called whenever jit is switched off or on, on any thread. Whoever is called so today still is."""

    def then(chained: Callable[[Any], None] | None, value: Any) -> None:
        if chained is not None:
            chained(value)
        switched()

    try:
        switch = names.DISABLE_JIT.find()
        for hook in (*names.THREAD_HOOK, *names.GLOBAL_HOOK):
            setattr(switch, hook, functools.partial(then, getattr(switch, hook)))
    except Exception:
        names.lose("this JAX does not let us notice that jit is switched off inside a block")
