"""What is hung on a frame and lives as long as it does: how the end of a trace is noticed.

What hangs there is a local variable that no code can name: up to Python 3.12 in the dictionary of locals that the frame
owns, later in the frame's own extra locals. So a debugger, a profiler or a measurement of coverage, which all want the one
`f_trace`, neither see it nor are disturbed. A frame that somebody keeps alive after its end (a traceback,
`inspect.currentframe()`) is found by looking for it on the stack.
"""

from __future__ import annotations

import functools
import gc
import opcode
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

_RETURNS = {opcode.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opcode.opmap}


_NAME = "#pytest_jitcache"


class Note:
    """Hung on a frame: a place for notes about it."""

    __slots__ = ("__weakref__", "bodies")

    def __init__(self) -> None:
        self.bodies: set[object] = set()  # traced in the one call that the frame is


def note_on(frame: FrameType) -> Note:
    """The note on a frame, hung there if there is none."""
    note = frame.f_locals.get(_NAME)
    if not isinstance(note, Note):
        note = frame.f_locals[_NAME] = Note()
    return note


class Running:
    """The frames that are watched, and what is to be done when each of them ends.

    Args:
        failed: is told of an exception that what is to be done has raised, where it can't be raised.
    """

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._watched: dict[int, _Watched] = {}

    def watch(self, frame: FrameType, value: Any, ended: Callable[[Any, bool], None]) -> None:
        """Call `ended(value, returned)` when a frame of this thread ends; not `returned`: it raised."""
        key = id(frame)
        watched = self._watched[key] = _Watched(value, ended, id(frame.f_back), threading.get_ident(), frame.f_code)
        watched.note = weakref.ref(note_on(frame), functools.partial(self._gone, key))

    def __bool__(self) -> bool:
        return bool(self._watched)

    def value_of(self, frames: Iterable[FrameType]) -> Any:
        """What the first of some frames that is watched is watched for, or None."""
        for frame in frames:
            watched = self._watched.get(id(frame))
            if watched is not None and watched.code is frame.f_code:
                return watched.value
        return None

    def holds(self, frame: FrameType) -> bool:
        """Whether a frame is watched."""
        return id(frame) in self._watched

    def forget(self, frame: FrameType) -> Any:
        """Watch a frame no longer; gives what it was watched for, or None."""
        watched = self._watched.pop(id(frame), None)
        return watched.value if watched is not None else None

    def settle(self, thread: int | None = None) -> None:
        """End what was watched of frames that are over and are kept alive; of this thread alone, if none is named."""
        if not self._watched:
            return
        thread = threading.get_ident() if thread is None else thread
        mine = {key: watched for key, watched in list(self._watched.items()) if watched.thread == thread}
        if not mine:
            return
        own = thread == threading.get_ident()
        top = sys._getframe(1) if own else sys._current_frames().get(thread)
        on_stack = {id(frame): frame.f_code for frame in _up(top)}
        for key, watched in reversed(mine.items()):
            if on_stack.get(key) is not watched.code:
                self._end(key, watched.returned())

    def settle_all(self) -> None:
        """The same, of all threads."""
        if not self._watched:
            return
        for thread in {watched.thread for watched in list(self._watched.values())}:
            self.settle(thread)

    def _gone(self, key: int, note: weakref.ref[Note]) -> None:
        """The note on a frame is gone, and the frame with it."""
        try:
            watched = self._watched.get(key)
            if watched is not None and watched.note is note:
                self._end(key, id(sys._getframe(1)) == watched.parent)  # one that returns dies while its caller runs
        except Exception as error:
            self._failed(error)

    def _end(self, key: int, returned: bool) -> None:
        watched = self._watched.pop(key, None)
        if watched is not None:
            watched.ended(watched.value, returned)


class _Watched:
    __slots__ = ("code", "ended", "note", "parent", "thread", "value")

    def __init__(self, value: Any, ended: Callable[[Any, bool], None], parent: int, thread: int, code: Any) -> None:
        self.value = value
        self.ended = ended
        self.parent = parent
        self.thread = thread
        self.code = code
        self.note: weakref.ref[Note] | None = None

    def returned(self) -> bool:
        """Whether the frame, which is over and kept alive, ended with a return."""
        note = self.note() if self.note is not None else None
        holders = gc.get_referrers(note) if note is not None else []
        for holder in [*holders, *gc.get_referrers(*(held for held in holders if isinstance(held, dict)))]:
            if isinstance(holder, FrameType) and holder.f_code is self.code and holder.f_locals.get(_NAME) is note:
                return holder.f_lasti >= 0 and self.code.co_code[holder.f_lasti] in _RETURNS
        return False


def _up(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
