"""A program under watch: what it traces is recorded as for a test, and told as soon as a function is traced again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pytest_jitcache.causes import compare
from pytest_jitcache.jax.persistent import PersistentCache
from pytest_jitcache.places import show
from pytest_jitcache.run.screen import Screen
from pytest_jitcache.suite.jax_import import WhenImported
from pytest_jitcache.suite.session import Record, Session, own_code
from pytest_jitcache.suite.totals import Totals

_EVERY = 0.2  # seconds between two updates of the line at the bottom


class Live(Session):
    """A session that tells, in one line, the first time that each function of the user's is traced again.

    Args:
        tell: is given the line.
        progress: is called after each trace.
    """

    def __init__(self, tell: Callable[[str], None], progress: Callable[[Live], None]) -> None:
        super().__init__(spans=True)
        self._tell = tell
        self._progress = progress
        self._first: dict[object, Record] = {}
        self._said: set[object] = set()

    def _compare(self, record: Record) -> None:
        super()._compare(record)
        trace = record.trace
        if trace is None or record.only_looked_at or not own_code(record.function):
            return
        self._progress(self)
        which = (trace.layers, trace.traced_for)
        earlier = self._first.setdefault(which, record)
        if earlier is record or which in self._said or earlier.trace is None:
            return
        self._said.add(which)
        difference = record.difference or compare(earlier.trace, trace)[0]
        site = trace.call_site
        place = f"{show(site.filename)}:{site.line}" if site is not None else trace.place
        change = f" {difference.before} -> {difference.after}" if difference.before and difference.what else ""
        self._tell(f"{place}: {trace.name} traced again: {difference.title}{change}")


class Watch:
    """Watches this process from `begin` to `end`.

    Args:
        name: of the program, as the report has it.
        screen: where retraces are told while it runs; None for nowhere.
        captures: whether to look for stale values, at the end.
    """

    def __init__(self, name: str, screen: Screen | None, captures: bool = False) -> None:
        self.name = name
        self.totals = Totals()
        self.cache = PersistentCache()
        self.stale: list[dict[str, Any]] = []
        self.jax_seen = False
        self._screen = screen
        self._captures: Any = None
        self._wants_captures = captures
        self._shown = 0.0
        self.session = Live(self._tell, self._progress)
        self._jax = WhenImported("jax", self._listen)

    def begin(self) -> None:
        self._began = time.perf_counter()
        self.session.enter(self.name, "call")
        self._jax.start()

    def warm(self) -> None:
        """Forget what was seen so far: the warm-up is over. What it has traced is known all the same."""
        self.session.flush()
        self.session.enter(self.name, "call")

    def end(self) -> Totals:
        """Stop, and give what was seen."""
        self._jax.stop()
        if self._screen is not None:
            self._screen.status("")
        self.session.leave()
        if self._captures is not None:
            self.stale = self._captures.look(everything=True)
        payload = self.session.flush(anyway=True)
        assert payload is not None
        self.totals.add({**payload, **({"stale": self.stale} if self.stale else {})})
        self.totals.wall = time.perf_counter() - self._began
        return self.totals

    def _listen(self) -> None:
        self.jax_seen = True
        self.session.listen()
        self.cache.listen()
        if self._wants_captures:
            from pytest_jitcache.suite.captures import SuiteCaptures

            self._captures = SuiteCaptures()
            self._captures.listen()
            self._captures.enter(self.name)

    def _tell(self, line: str) -> None:
        if self._screen is not None:
            self._screen.write_line(f"jitcache: {line}", yellow=True)

    def _progress(self, session: Live) -> None:
        now = time.perf_counter()
        if self._screen is None or not self._screen.is_terminal or now - self._shown < _EVERY:
            return
        self._shown = now
        traces = sum(record.trace is not None for record in session.records)
        spent = sum(sum(record.seconds.values()) for record in session.records)
        self._screen.status(f"jitcache: {traces} traces, {spent:.1f} s of {now - self._began:.0f} s")
