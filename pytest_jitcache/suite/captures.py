"""`--jitcache-check-captures`: after each test, the live functions whose captured values have changed since their trace.

Looked at is cheap, what is captured; only where that has changed are two programs compared. Looking takes at most
`SHARE` of the time of the run: where there is more to look at, the rest waits for a later test, and the finding says
between which two it changed.
"""

from __future__ import annotations

import gc
import itertools
import threading
import time
from typing import Any

from pytest_jitcache import report_stale as words
from pytest_jitcache.captures.proof import Captures, Kept, Stale
from pytest_jitcache.identity import Unwrapped
from pytest_jitcache.jax.stack import Stack
from pytest_jitcache.places import is_library
from pytest_jitcache.recorder import Trace, Watcher, recorder

SHARE = 0.05
_GRACE = 0.5  # seconds that are free, for short runs


class SuiteCaptures(Watcher):
    """Keeps what the functions of the user's own code captured when they were traced, for the whole run."""

    wants_captures = True

    def __init__(self) -> None:
        self.captures = Captures()
        self.last_test = ""
        self._began = time.perf_counter()
        self._spent = 0.0
        self._number = itertools.count(1)
        self._open: dict[int, Kept] = {}
        self._lock = threading.RLock()

    def listen(self) -> None:
        """Begin to watch; JAX has been imported."""
        recorder.watch(self)

    def begin(self, trace: Trace, function: Unwrapped, stack: Stack) -> None:
        if not function.found or is_library(function.filename):
            return
        began = time.perf_counter()
        kept = self.captures.begin(trace, function.objects)
        if kept is not None:
            kept.test = self.last_test
            self._open[id(trace)] = kept
        self._spent += time.perf_counter() - began

    def end(self, trace: Trace) -> None:
        with self._lock:
            kept = self._open.pop(id(trace), None)
            if kept is not None:
                began = time.perf_counter()
                self.captures.end(kept)
                self._spent += time.perf_counter() - began

    def enter(self, nodeid: str) -> None:
        """A test begins."""
        self.last_test = nodeid

    def look(self, everything: bool = False) -> list[dict[str, Any]]:
        """What has gone stale in the test that has ended, as plain data.

        Args:
            everything: whether to look at all functions, however long it takes.
        """
        found = []
        number = next(self._number)
        with self._lock, recorder.quiet():
            waiting = sorted(self.captures.living(), key=lambda kept: kept.looked)
            for kept in waiting:
                began = time.perf_counter()
                if not everything and self._spent > _GRACE + SHARE * (began - self._began):
                    break
                since, kept.looked, before = kept.looked, number, kept.test_before
                kept.test_before = self.last_test
                stale = self.captures.stale_one(kept, "changed")
                if stale is not None and not self._is_garbage(kept, stale):
                    self.captures.forget(kept)
                    late = bool(since) and since < number - 1
                    found.append(self._told(stale, kept, before if late else ""))
                del stale
                self._spent += time.perf_counter() - began
        return found

    @staticmethod
    def _is_garbage(kept: Kept, stale: Stale) -> bool:
        """Whether nobody can call the function any more, and only a cycle has kept it so far."""
        gc.collect()
        return kept.call.fun() is None

    def _told(self, stale: Stale, kept: Kept, since: str) -> dict[str, Any]:
        trace = stale.trace
        changes = words.told(stale)
        return {
            "function": {"name": trace.name, "qualname": trace.qualname, "file": trace.filename, "line": trace.line},
            "title": words.title(stale),
            "changes": [
                {
                    "path": change.path,
                    "before": change.before.text,
                    "after": change.after.text,
                    "read_at": change.before.line or change.after.line or None,
                }
                for change in changes
            ],
            "traced_in": kept.test or None,
            "changed_after": since or None,
            "text": words.text(stale),
        }
