"""Listening to JAX: the start and the end of each trace, lowerings and compiles."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from pytest_jitcache.jax import names, probe, settings
from pytest_jitcache.jax.running import Running
from pytest_jitcache.jax.stack import Call, Stack, Start, bare, file_of, fun_of
from pytest_jitcache.places import OURS, in_jax

__tracebackhide__ = True

_STAGES = {"trace": names.TRACE_EVENT, "lower": names.LOWER_EVENT, "compile": names.COMPILE_EVENT}

_CANARY = "/pytest_jitcache/canary"
_EAGER = frozenset({"scan", "while", "cond"})


class Sink(Protocol):
    """Who is told."""

    def cares(self, fun: Any) -> bool: ...

    def trace_started(self, start: Start) -> object: ...

    def trace_ended(self, token: Any, seconds: float, succeeded: bool) -> None: ...

    def stage_ended(self, stage: str, seconds: float, fun_name: str, call: Call | None, stack: Stack) -> None: ...

    def trace_measured(self, seconds: float, fun_name: str, fun: Any) -> None: ...

    def jit_switched(self, off: bool) -> None: ...

    def explained(self, fun: Any, text: str) -> None: ...

    def failed(self, error: BaseException) -> None: ...


@dataclass
class _Open:
    """A trace that is running: the tokens of the sink."""

    tokens: list[object]
    began: float


@dataclass
class _State:
    sink: Sink | None = None
    chained: Callable[..., Any] | None = None
    heard: threading.local = field(default_factory=threading.local)
    probed: bool = False
    missing: list[str] = field(default_factory=list)


state = _State()


def _failed(error: BaseException) -> None:
    if state.sink is not None:
        state.sink.failed(error)


_running = Running(_failed)


def listen(sink: Sink) -> None:
    """Send everything to `sink` from now on. May be called again at any time; repairs what others have removed."""
    import jax.monitoring

    state.sink = state.sink or sink
    if not monitoring_is_heard():
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
    if announces_starts() and not trace_starts_are_heard():
        util, name = names.module(names.UTIL), names.LISTENER.texts[0]
        present = getattr(util, name)
        state.chained = present if present is not _on_event else None
        setattr(util, name, _on_event)
    settings.hook_disable_jit(_jit_switched)
    _keep_out_of_places()
    _probe()
    state.sink = sink


def _probe() -> None:
    """Find out, once a process, whether this JAX tells what a verdict needs."""
    if state.probed or settings.jit_is_disabled():
        return
    ear, trace = probe.made()
    before, state.sink = state.sink, ear
    try:
        trace()
    except Exception:
        return  # nothing can be traced at the moment
    finally:
        state.sink = before
    state.probed = True
    state.missing = probe.missing(ear)
    if not announces_starts():
        names.lose("this JAX does not announce the start of a trace: traces are seen when they end")
    if not probe.compiles_are_heard():
        names.lose(_NO_COMPILES)


_NO_COMPILES = "this JAX does not announce compiles in a way that is known here"


def missing(compiles: bool = False) -> list[str]:
    """Why no verdict can be given, one line each; empty where all that it needs is heard.

    Args:
        compiles: whether the verdict is about compiles, too.
    """
    return [*state.missing, *([_NO_COMPILES] if compiles and not probe.compiles_are_heard() else [])]


@functools.cache
def _keep_out_of_places() -> None:
    """Our frames are no user's: without them the place of a call that goes through a wrap is what it is without one."""
    try:
        names.EXCLUSION.find()(OURS)
    except Exception:
        names.lose("the places that this JAX names itself may be ours, where a wrapped function is called")


def monitoring_is_heard() -> bool:
    """Whether events of `jax.monitoring` still reach us; `jax.monitoring.clear_event_listeners()` ends that."""
    import jax.monitoring

    listeners = names.LISTENERS.find()
    if listeners is not None:
        return _on_duration in listeners()
    state.heard.monitoring = 0
    jax.monitoring.record_event_duration_secs(_CANARY, 0.0)
    return bool(state.heard.monitoring)


def trace_starts_are_heard() -> bool:
    """Whether the starts of traces still reach us."""
    announce = names.ANNOUNCE.find()
    if announce is None:
        return names.LISTENER.of(names.module(names.UTIL)) is _on_event or not announces_starts()
    state.heard.starts = 0
    announce(_CANARY)
    return bool(state.heard.starts)


def announces_starts() -> bool:
    """Whether this JAX announces the start of each trace (0.5 and later)."""
    return any(hasattr(names.module(names.UTIL), name) for name in names.LISTENER)


def _on_duration(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event == _CANARY:
        state.heard.monitoring = 1
        return
    sink = state.sink
    stage = next((stage for stage, name in _STAGES.items() if event in name), None)
    if sink is None or stage is None:
        return
    try:
        stack = Stack(sys._getframe(1))
        _running.settle()
        name = str(kwargs.get("fun_name", ""))
        if stage == "trace":
            if not (announces_bodies() or getattr(state.heard, "busy", False)):
                state.heard.busy = True  # to record a trace may trace: the parts of an equinox module are put together
                try:
                    _trace_seen_at_its_end(sink, stack, duration_secs)
                finally:
                    state.heard.busy = False
            elif not trace_starts_are_heard():
                raise LookupError("what tells of the start of a trace was replaced")
            call = next((call for call, _ in stack.calls()), None)
            sink.trace_measured(duration_secs, bare(name), call.fun if call is not None else None)
            return
        sink.stage_ended(stage, duration_secs, bare(name), stack.users_call(), stack)
    except Exception as error:
        sink.failed(error)


def _on_event(name: str, *args: Any) -> None:
    if name == _CANARY:
        state.heard.starts = 1
        return
    if state.chained is not None:
        state.chained(name, *args)
    sink = state.sink
    if sink is None or name not in names.STARTS:
        return
    try:
        _trace_starts(sink, sys._getframe(2))
    except Exception as error:
        sink.failed(error)


def announces_bodies() -> bool:
    """Whether this JAX announces each run of a body under a trace (0.9 and later), and not only those under a jit."""
    return names.BODIES_ANNOUNCED.find() is not None


def announces_checkpoints() -> bool:
    """Whether this JAX announces the body of a `jax.checkpoint` (0.10 and later), as it does the other bodies."""
    import jax

    return announces_bodies() and jax.__version_info__ >= (0, 10)


def _tokens(sink: Sink, frame: FrameType) -> list[object]:
    fun = fun_of(frame)
    if fun is None:
        raise LookupError("JAX does not say which function it traces")
    if not announces_bodies() and getattr(fun, "__name__", "") in names.EAGER and in_jax(file_of(fun)):
        starts = Stack(frame).starts_of_bodies()
    else:
        starts = [Stack(frame).start(fun)] if sink.cares(fun) else []
    found = (sink.trace_started(start) for start in starts)
    return [token for token in found if token is not None]


def _trace_starts(sink: Sink, frame: FrameType) -> None:
    _running.settle()
    tokens = _tokens(sink, frame)
    if not tokens:
        return
    _running.watch(frame, _Open(tokens, time.perf_counter()), _end)


def _end(running: _Open, succeeded: bool) -> None:
    if state.sink is not None:
        for token in running.tokens:
            state.sink.trace_ended(token, time.perf_counter() - running.began, succeeded)


def _trace_seen_at_its_end(sink: Sink, stack: Stack, duration: float) -> None:
    """JAX 0.4.35, and the pmap of 0.8 and earlier: the one event comes when the trace is over."""
    wanted = (*names.PMAP_ENDS, *(() if announces_starts() else names.ENDS))
    within = [frame for frame in stack.in_jax() if frame.f_code.co_name in wanted]
    if not within or within[0] not in [frame for frame, _ in stack.frames[1:6]]:
        return
    here, *around = within
    for outer in reversed([frame for frame in around if not _running.holds(frame)]):
        _trace_starts(sink, outer)  # it has started before: from here on it is known what is inside it
    error, traceback = sys.exc_info()[1], sys.exc_info()[2]
    raised = False
    while error is not None and traceback is not None:
        raised = raised or traceback.tb_frame is here
        traceback = traceback.tb_next
    running: _Open | None = _running.forget(here)
    for token in running.tokens if running is not None else _tokens(sink, here):
        sink.trace_ended(token, duration, not raised)


def running_trace(frame: FrameType | Stack) -> object:
    """The token of the innermost trace that runs at or above a frame, or None."""
    if not _running:
        return None
    running: _Open | None = _running.value_of(Stack(frame) if isinstance(frame, FrameType) else frame)
    return running.tokens[0] if running is not None else None


def settle() -> None:
    """Notice the end of each trace that is over, also where somebody keeps its frame alive."""
    _running.settle_all()


def settle_here() -> None:
    """The same, of this thread alone."""
    _running.settle()


def _jit_switched() -> None:
    sink = state.sink
    if sink is not None:
        try:
            sink.jit_switched(settings.jit_is_disabled())
        except Exception as error:
            sink.failed(error)
