"""Runs of Python code objects: whether a body ran at all, and whether it ran while jit was off.

On Python 3.12 and later `sys.monitoring` reports the starts of single code objects, on all threads and without any price
for other code. On 3.10 and 3.11, and where others have taken all its tool ids, a profile hook does, for as short a time as
possible; where a profiler in C has that place, a trace hook. A hook of somebody else's is called from ours and put back.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar, NamedTuple


class Calls:
    """Notices the calls of some code objects until it is stopped.

    Args:
        codes: the code objects.
        called: a method, called with the frame of each run that is noticed. On 3.10 and 3.11 it answers whether to look on.
    """

    def __init__(self, codes: frozenset[CodeType], called: Callable[[FrameType], bool]) -> None:
        self._codes = codes
        self._called = weakref.WeakMethod(called, lambda _: self.stop())  # who listens no more need not be kept alive
        self._running = False
        self._monitored = False

    def start(self) -> None:
        """Begin to look; where it looks already, see to it that nobody has taken the hook's place since."""
        if not self._codes:
            return
        if self._running:
            if not self._monitored:
                _Hook.install()
            return
        self._running = True
        self._monitored = _Monitoring.add(self._codes, self._started)
        if not self._monitored:
            _Hook.add(self)

    def stop(self) -> None:
        if not self._running:
            return
        self._running = False
        if self._monitored:
            _Monitoring.remove(self._codes, self._started)
        else:
            _Hook.remove(self)

    @property
    def blind(self) -> bool:
        """Whether calls on this thread can't be noticed: others have taken every place from which they can be seen."""
        return self._running and not self._monitored and not _Hook.installed()

    def _started(self, frame: FrameType) -> None:
        called = self._called()
        if self._running and (called is None or not called(frame)):
            self.stop()

    def look_at(self, frame: FrameType) -> None:
        """A function has been called."""
        if frame.f_code in self._codes:
            self._started(frame)


class _Monitoring:
    """`sys.monitoring` with a tool id of our own; local events only."""

    tool: ClassVar[int | None] = None
    listeners: ClassVar[dict[CodeType, list[Callable[[FrameType], None]]]] = {}
    lock = threading.RLock()

    @classmethod
    def add(cls, codes: frozenset[CodeType], listener: Callable[[FrameType], None]) -> bool:
        """Listen to the starts of `codes`. False where there is no `sys.monitoring`, or no tool id is left."""
        if sys.version_info < (3, 12):
            return False
        with cls.lock:
            monitoring = sys.monitoring
            if cls.tool is None:
                cls.tool = next((tool for tool in (4, 3, 5, 2) if monitoring.get_tool(tool) is None), None)
                if cls.tool is None:
                    return False
                monitoring.use_tool_id(cls.tool, "pytest-jitcache")
                monitoring.register_callback(cls.tool, monitoring.events.PY_START, cls._on_start)
            for code in codes:
                cls.listeners.setdefault(code, []).append(listener)
                monitoring.set_local_events(cls.tool, code, monitoring.events.PY_START)
            return True

    @classmethod
    def remove(cls, codes: frozenset[CodeType], listener: Callable[[FrameType], None]) -> None:
        if sys.version_info < (3, 12) or cls.tool is None:
            return
        with cls.lock:
            for code in codes:
                left = [one for one in cls.listeners.get(code, ()) if one != listener]
                if left:
                    cls.listeners[code] = left
                    continue
                cls.listeners.pop(code, None)
                sys.monitoring.set_local_events(cls.tool, code, 0)
            if not cls.listeners:
                sys.monitoring.register_callback(cls.tool, sys.monitoring.events.PY_START, None)
                sys.monitoring.free_tool_id(cls.tool)
                cls.tool = None

    @classmethod
    def _on_start(cls, code: CodeType, _: int) -> None:
        try:
            frame = sys._getframe(1)
            for listener in tuple(cls.listeners.get(code, ())):
                listener(frame)
        except Exception:
            return


class _Place(NamedTuple):
    """Where a hook is put that hears of each call: for this thread, and for those that start later."""

    get: Callable[[], Any]
    put: Callable[[Any], None]
    get_for_threads: Callable[[], Any]
    put_for_threads: Callable[[Any], None]


_PROFILE = _Place(sys.getprofile, sys.setprofile, threading.getprofile, threading.setprofile)
_TRACE = _Place(sys.gettrace, sys.settrace, threading.gettrace, threading.settrace)


class _Hook:
    """One hook for all who wait. It calls the one that stood there before, and gives its place back."""

    waiting: ClassVar[list[Calls]] = []
    lock = threading.RLock()
    theirs = threading.local()  # `.hooks`: by place, what stood there on this thread
    theirs_for_threads: ClassVar[dict[_Place, Any]] = {}

    @classmethod
    def add(cls, calls: Calls) -> None:
        with cls.lock:
            cls.waiting = [*cls.waiting, calls]
        cls.install()

    @classmethod
    def remove(cls, calls: Calls) -> None:
        with cls.lock:
            cls.waiting = [one for one in cls.waiting if one is not calls]
            if cls.waiting:
                return
            for place in (_PROFILE, _TRACE):
                cls._put_back(place)
                if place.get_for_threads() == cls.hook:
                    place.put_for_threads(cls.theirs_for_threads.pop(place, None))

    @classmethod
    def install(cls) -> None:
        """Hook into this thread, where no profiler in C stands that could not be called."""
        place = next((place for place in (_PROFILE, _TRACE) if cls._may_be_at(place)), None)
        if place is None or cls.installed():
            return
        hooks = cls.theirs.__dict__.setdefault("hooks", {})
        hooks[place] = place.get()
        place.put(cls.hook)
        if place.get_for_threads() != cls.hook:
            cls.theirs_for_threads[place] = place.get_for_threads()
            place.put_for_threads(cls.hook)

    @classmethod
    def installed(cls) -> bool:
        return cls.hook in (_PROFILE.get(), _TRACE.get())

    @classmethod
    def _may_be_at(cls, place: _Place) -> bool:
        there = place.get()
        return there is None or isinstance(there, types.FunctionType | types.MethodType | functools.partial)

    @classmethod
    def _put_back(cls, place: _Place) -> None:
        if place.get() == cls.hook:
            place.put(cls.theirs.__dict__.get("hooks", {}).pop(place, None))

    @classmethod
    def hook(cls, frame: FrameType, event: str, argument: object) -> Any:
        place = _PROFILE if _PROFILE.get() == cls.hook else _TRACE
        hooks = cls.theirs.__dict__.get("hooks", {})
        theirs = hooks[place] if place in hooks else cls.theirs_for_threads.get(place)
        if not cls.waiting:
            place.put(theirs)
        elif event == "call":
            for calls in cls.waiting:
                calls.look_at(frame)
        return theirs(frame, event, argument) if theirs is not None else None
