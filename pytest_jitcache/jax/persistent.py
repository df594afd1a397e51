"""JAX's persistent compilation cache: how many compiles it was asked for, served, and what that saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_ASKED = "/jax/compilation_cache/compile_requests_use_cache"
_HIT = "/jax/compilation_cache/cache_hits"
_MISS = "/jax/compilation_cache/cache_misses"
_SAVED = "/jax/compilation_cache/compile_time_saved_sec"


@dataclass
class PersistentCache:
    """Counts from the moment it listens; all through the public `jax.monitoring`.

    Attributes:
        asked: compiles for which JAX looked into the cache.
        hits: those of them that it served.
        misses: those that were compiled, and written to it.
        saved: seconds that the hits would have taken.
    """

    asked: int = 0
    hits: int = 0
    misses: int = 0
    saved: float = 0.0

    def listen(self) -> None:
        """Begin to count; JAX has been imported."""
        import jax.monitoring

        jax.monitoring.register_event_listener(self._event)
        jax.monitoring.register_event_duration_secs_listener(self._duration)

    def _event(self, event: str, **_: Any) -> None:
        self.asked += event == _ASKED
        self.hits += event == _HIT
        self.misses += event == _MISS

    def _duration(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == _SAVED:
            self.saved += max(0.0, duration_secs)

    def document(self) -> dict[str, float]:
        """As JSON types."""
        return {"asked": self.asked, "hits": self.hits, "misses": self.misses, "saved_seconds": self.saved}
