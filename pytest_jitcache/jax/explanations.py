"""What JAX itself says of a cache miss, for `-vv`."""

from __future__ import annotations

import logging
import sys
import threading
from types import FrameType
from typing import Any

from pytest_jitcache.jax import listening, names
from pytest_jitcache.jax.stack import fun_of
from pytest_jitcache.places import in_jax

__tracebackhide__ = True

_EXPLAINERS = ("jax._src.pjit", "jax._src.interpreters.partial_eval", "jax._src.compiler", "jax._src.compilation_cache")
_EXPLANATION = "TRACING CACHE MISS"
_RAISED_TO_WARNINGS = ("PERSISTENT COMPILATION CACHE MISS", "Not writing persistent cache entry")


def explains_misses() -> bool:
    """Whether this JAX can explain why a call was not found in the trace cache."""
    import jax

    return any(hasattr(jax.config, name) for name in names.EXPLAIN)


class _Explanations(logging.Filter):
    """Hands JAX's explanations to the sink, and keeps out of the log what is there for our sake only."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.before = False
        self.lock = threading.Lock()

    def start(self) -> None:
        """Have JAX explain each cache miss, on all threads, until `stop`. Nothing is traced again for it."""
        import jax

        with self.lock:
            self.asked += 1
            if self.asked == 1 and explains_misses():
                self.before = bool(names.EXPLAIN.of(jax.config))
                for name in _EXPLAINERS:
                    logging.getLogger(name).addFilter(self)
                jax.config.update(names.EXPLAIN.texts[0], True)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        import jax

        with self.lock:
            self.asked -= 1
            if not self.asked and explains_misses():
                jax.config.update(names.EXPLAIN.texts[0], self.before)  # type: ignore[no-untyped-call]
                for name in _EXPLAINERS:
                    logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        ours = not self.before and not self._asked_for_by_user()
        if not text.startswith(_EXPLANATION):
            return not (ours and text.startswith(_RAISED_TO_WARNINGS))
        if listening.state.sink is not None:
            try:
                listening.state.sink.explained(_explained_fun(sys._getframe(1)), text)
            except Exception as error:
                listening.state.sink.failed(error)
        return not ours

    @staticmethod
    def _asked_for_by_user() -> bool:
        """Whether a test has switched the explanations on for its thread, under `jax.explain_cache_misses(True)`."""
        try:
            return names.EXPLAIN_HERE.find().get_local() is True
        except Exception:
            return False


explanations = _Explanations()


def _explained_fun(frame: FrameType | None) -> Any:
    """The function whose miss JAX is explaining: a local of the function that does."""
    while frame is not None:
        if in_jax(frame.f_code.co_filename) and frame.f_code.co_name.startswith("explain"):
            return fun_of(frame) or names.EXPLAINED.read(frame.f_locals)
        frame = frame.f_back
    return None
