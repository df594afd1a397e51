"""A pytest plugin that proves that a function is traced at most once per signature.

`assert_traced_once` is the fixture; `traced_once` is the same thing for a REPL or a script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jitcache.errors import JitcacheWarning, RetraceError, StaleValueError
from pytest_jitcache.fixture import AssertTracedOnce

if TYPE_CHECKING:
    from pytest_jitcache.guard import TraceRecord, traced_once
    from pytest_jitcache.recorder import Site, Trace
    from pytest_jitcache.signature import Signature

__all__ = [
    "AssertTracedOnce",
    "JitcacheWarning",
    "RetraceError",
    "Signature",
    "Site",
    "StaleValueError",
    "Trace",
    "TraceRecord",
    "traced_once",
]

_LAZY = {
    "Signature": "pytest_jitcache.signature",
    "Site": "pytest_jitcache.recorder",
    "Trace": "pytest_jitcache.recorder",
    "TraceRecord": "pytest_jitcache.guard",
    "traced_once": "pytest_jitcache.guard",
}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext pytest_jitcache`."""
    from pytest_jitcache.run.notebook import load

    load(shell)


def __getattr__(name: str) -> Any:
    """Load on first use, so that pytest can load the plugin without JAX."""
    if name in _LAZY:
        import importlib

        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
