"""Runs of Python code objects: whether a body ran at all, and whether it ran while jit was off.

On Python 3.12 and later `sys.monitoring` reports the starts of single code objects, on all threads and without any price
for other code. On 3.10 and 3.11 a profile hook does, for as short a time as possible.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import ClassVar


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

    def start(self) -> None:
        if self._running or not self._codes:
            return
        self._running = True
        if sys.version_info >= (3, 12):
            _Monitoring.add(self._codes, self._started)
        else:
            _Profile.add(self)

    def stop(self) -> None:
        if not self._running:
            return
        self._running = False
        if sys.version_info >= (3, 12):
            _Monitoring.remove(self._codes, self._started)
        else:
            _Profile.remove(self)

    def _started(self, frame: FrameType) -> None:
        called = self._called()
        if self._running and (called is None or not called(frame)):
            self.stop()

    def profile(self, frame: FrameType) -> None:
        if frame.f_code in self._codes:
            self._started(frame)


class _Monitoring:
    """`sys.monitoring` with a tool id of our own; local events only."""

    tool: int | None = None
    listeners: ClassVar[dict[CodeType, list[Callable[[FrameType], None]]]] = {}
    lock = threading.RLock()

    @classmethod
    def add(cls, codes: frozenset[CodeType], listener: Callable[[FrameType], None]) -> None:
        if sys.version_info >= (3, 12):
            with cls.lock:
                monitoring = sys.monitoring
                if cls.tool is None:
                    for tool in (4, 3):
                        if monitoring.get_tool(tool) is None:
                            monitoring.use_tool_id(tool, "pytest-jitcache")
                            monitoring.register_callback(tool, monitoring.events.PY_START, cls._on_start)
                            cls.tool = tool
                            break
                if cls.tool is None:
                    return
                for code in codes:
                    cls.listeners.setdefault(code, []).append(listener)
                    monitoring.set_local_events(cls.tool, code, monitoring.events.PY_START)

    @classmethod
    def remove(cls, codes: frozenset[CodeType], listener: Callable[[FrameType], None]) -> None:
        if sys.version_info >= (3, 12):
            with cls.lock:
                for code in codes:
                    left = [one for one in cls.listeners.get(code, ()) if one != listener]
                    if left:
                        cls.listeners[code] = left
                        continue
                    cls.listeners.pop(code, None)
                    if cls.tool is not None:
                        sys.monitoring.set_local_events(cls.tool, code, 0)

    @classmethod
    def _on_start(cls, code: CodeType, _: int) -> None:
        try:
            frame = sys._getframe(1)
            for listener in tuple(cls.listeners.get(code, ())):
                listener(frame)
        except Exception:
            return


class _Profile:
    """One profile hook for all who wait, on the threads that need it."""

    waiting: ClassVar[list[Calls]] = []
    lock = threading.RLock()

    @classmethod
    def add(cls, calls: Calls) -> None:
        with cls.lock:
            cls.waiting = [*cls.waiting, calls]
        if sys.getprofile() is None:
            sys.setprofile(cls.hook)
            threading.setprofile(cls.hook)

    @classmethod
    def remove(cls, calls: Calls) -> None:
        with cls.lock:
            cls.waiting = [one for one in cls.waiting if one is not calls]
            if not cls.waiting:
                if sys.getprofile() == cls.hook:
                    sys.setprofile(None)
                threading.setprofile(None)

    @classmethod
    def hook(cls, frame: FrameType, event: str, _: object) -> None:
        if not cls.waiting:
            sys.setprofile(None)
        elif event == "call":
            for calls in cls.waiting:
                calls.profile(frame)
