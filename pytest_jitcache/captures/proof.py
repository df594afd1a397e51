"""Whether a warm function keeps a stale value: its cached program against the one that JAX would make of it now."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal

from pytest_jitcache.captures.snapshot import Change, Snapshot, changed_arrays, changes, look, snapshot
from pytest_jitcache.jax import programs
from pytest_jitcache.places import in_jax, is_library

if TYPE_CHECKING:
    from pytest_jitcache.recorder import Trace

Which = Literal["all", "changed", "unchanged"]

_IDLE = 3  # proofs without a finding, after which a value that changes all the time is looked at no more


@dataclass
class Stale:
    """A function that keeps a stale value.

    Attributes:
        trace: the trace that its warm calls go back to.
        changes: what it captures that is another value now; empty where nothing is, or nothing that can be seen.
        apart: the first difference between the two programs; None where tracing it again raises.
        advanced: the paths whose values its own body changes.
        impure: whether two traces, one right after the other, give different programs.
        raised: what it raises when it is traced again.
    """

    trace: Trace
    changes: list[Change]
    apart: programs.Apart | None
    advanced: frozenset[str] = frozenset()
    impure: bool = False
    raised: str = ""
    reads: frozenset[str] = frozenset()


@dataclass(eq=False)
class Kept:
    """One trace that a warm call may go back to, and what was captured then. Keeps no array and no function alive."""

    trace: Trace
    call: programs.Call
    codes: frozenset[CodeType]
    objects: tuple[Callable[[], Any], ...]
    start: Snapshot
    end: Snapshot | None = None
    advanced: frozenset[str] = frozenset()  # paths whose values the body itself has changed
    test: str = ""  # in which it was traced, for a whole suite
    test_before: str = ""  # that had ended when it was last looked at
    looked: int = 0  # after which test that was, in numbers
    proven: Snapshot | None = None  # what was captured when the two programs were last compared

    def now(self) -> Snapshot:
        return snapshot(_alive(self.objects), self.call.statics())

    def changed(self) -> list[Change]:
        """What is another value than when it was traced, or when that was last looked at."""
        try:
            return changes(self.proven or self.end or self.start, self.now())
        except LookupError:
            return []

    def prove(self) -> Stale | None:
        """Compare the two programs.

        Raises:
            NotChecked, NothingWarm: they could not be compared, or there is nothing to compare.
        """
        if not programs.compares():
            raise NotChecked("this JAX gives no programs to compare")
        if self.call.fun() is None:
            raise NothingWarm
        try:
            now = self.now()
            before = programs.cached(self.call, self.codes)
        except LookupError as error:
            raise NotChecked(str(error)) from None
        if before is None:
            raise NothingWarm
        changed = changes(self.start, now)
        arrays = changed_arrays(self.start)
        with programs.random_numbers_kept():
            try:
                first = programs.fresh(self.call)
                apart = programs.difference(before, first, arrays)
                if apart is None:
                    self.proven = self.now()
                    return None
                impure = programs.difference(first, programs.fresh(self.call)) is not None
            except Exception as error:
                if not changed or type(error).__name__ == "UnexpectedTracerError" or not _users_own(error):
                    raise NotChecked(f"tracing it again raises {type(error).__name__}") from None
                return Stale(self.trace, changed, None, self.advanced, raised=f"{type(error).__name__}: {error}")
        return Stale(self.trace, changed, apart, self.advanced, impure, reads=frozenset(now.names))


def _users_own(error: Exception) -> bool:
    """Whether code of the user's raised it, or JAX called by that: a library may miss what it puts around a trace."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised = next((f for f in reversed(frames) if not in_jax(f.f_code.co_filename)), None)
    return raised is not None and not is_library(raised.f_code.co_filename)


class NothingWarm(Exception):
    """The function is gone, or its cache is cleared: its next call reads everything anew."""


class NotChecked(Exception):
    """Two programs could not be compared, for this reason."""


def _alive(objects: tuple[Callable[[], Any], ...]) -> list[Any]:
    return [one for one in (ref() for ref in objects) if one is not None]


@dataclass(eq=False)
class Captures:
    """The traces of some functions, for which somebody wants to know whether they have gone stale.

    Attributes:
        not_checked: the names of functions that could not be checked, with the reason.
    """

    kept: dict[object, Kept] = field(default_factory=dict)
    not_checked: dict[str, str] = field(default_factory=dict)
    checked: int = 0
    _vain: dict[str, int] = field(default_factory=dict)

    def begin(self, trace: Trace, objects: tuple[Any, ...]) -> Kept | None:
        """A trace begins: note what its function captures."""
        call = trace.call
        if call is None:
            if trace.traced_for == "jit":
                self.not_checked.setdefault(trace.name, "how it was called is not known")
            return None
        refs = tuple(weakref.ref(o) for o in objects if _can_be_referred_to(o))
        return Kept(trace, call, frozenset(trace.codes), refs, snapshot(objects, call.statics()))

    def end(self, kept: Kept) -> None:
        """It has ended, and a warm call may go back to it from now on."""
        kept.end = kept.now()
        kept.advanced = frozenset(c.path for c in changes(kept.start, kept.end))
        key = (id(kept.call.fun()), kept.call.key)
        self.kept.pop(key, None)
        self.kept[key] = kept

    def living(self) -> list[Kept]:
        """The traces of functions that are still there, in the order in which they were made."""
        for key in [key for key, kept in tuple(self.kept.items()) if kept.call.fun() is None]:
            self.kept.pop(key, None)
        return [*self.kept.values()]

    def forget(self, kept: Kept) -> None:
        """It has been told."""
        for key in [key for key, other in tuple(self.kept.items()) if other is kept]:
            self.kept.pop(key, None)

    def stale(self, which: Which = "all") -> list[Stale]:
        """Those that have gone stale, in the order in which they were traced.

        Args:
            which: to compare programs for "all", or only where something captured has "changed" since the last time, or
                is "unchanged".
        """
        found = [self.stale_one(kept, which) for kept in self.living()]
        return [one for one in found if one is not None]

    def stale_one(self, kept: Kept, which: Which = "all") -> Stale | None:
        """The same of one."""
        if which != "all" and bool(self.changed(kept)) != (which == "changed"):
            return None
        try:
            self.checked += 1
            return kept.prove()
        except NothingWarm:
            return None
        except NotChecked as error:
            self.not_checked.setdefault(kept.trace.name, str(error))
            return None

    def changed(self, kept: Kept) -> list[Change]:
        """What has changed since the last time, without what has changed in vain too often."""
        found = [c for c in kept.changed() if self._vain.get(c.path, 0) < _IDLE]
        for change in found:
            self._vain[change.path] = self._vain.get(change.path, 0) + 1
        return found

    def look(self) -> Callable[[], bool]:
        """A quick look whether all that is captured is the same as now. Keeps the functions alive."""
        vain = {path for path, times in self._vain.items() if times >= _IDLE}
        looks = [look(_alive(kept.objects), kept.call.statics(), vain) for kept in self.living()[-1:]]
        return looks[0] if looks else lambda: True


def _can_be_referred_to(value: object) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True
