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

from pytest_jitcache.jax import names, settings, stack
from pytest_jitcache.jax.running import Running
from pytest_jitcache.places import OURS, in_jax

__tracebackhide__ = True

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
STAGES = {TRACE: "trace", LOWER: "lower", COMPILE: "compile"}

_CANARY = "/pytest_jitcache/canary"
_STARTS = frozenset({"trace_to_jaxpr", "create_pjit_jaxpr"})
_EAGER = frozenset({"scan", "while", "cond"})


class Sink(Protocol):
    """Who is told."""

    def cares(self, fun: Any) -> bool: ...

    def trace_started(self, start: stack.Start) -> object: ...

    def trace_ended(self, token: Any, seconds: float, succeeded: bool) -> None: ...

    def stage_ended(
        self, stage: str, seconds: float, fun_name: str, call: stack.Call | None, frame: FrameType
    ) -> None: ...

    def trace_measured(self, seconds: float, fun_name: str) -> None: ...

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


state = _State()


def _failed(error: BaseException) -> None:
    if state.sink is not None:
        state.sink.failed(error)


_running = Running(_failed)


def listen(sink: Sink) -> None:
    """Send everything to `sink` from now on. May be called again at any time; repairs what others have removed."""
    import jax.monitoring

    state.sink = sink
    if not monitoring_is_heard():
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
    util = names.module("jax._src.util")
    if util is not None and hasattr(util, "test_event_listener"):
        if not trace_starts_are_heard():
            present = util.test_event_listener
            state.chained = present if present is not _on_event else None
            util.test_event_listener = _on_event
    else:
        names.lose("this JAX does not announce the start of a trace: traces are seen when they end")
    settings.hook_disable_jit(_jit_switched)
    _keep_out_of_places()


@functools.cache
def _keep_out_of_places() -> None:
    """Our frames are no user's: without them the place of a call that goes through a wrap is what it is without one."""
    try:
        names.module("jax._src.source_info_util").register_exclusion(OURS)
    except Exception:
        names.lose("the places that this JAX names itself may be ours, where a wrapped function is called")


def monitoring_is_heard() -> bool:
    """Whether events of `jax.monitoring` still reach us; `jax.monitoring.clear_event_listeners()` ends that."""
    import jax.monitoring

    listeners = getattr(names.module("jax._src.monitoring"), "get_event_duration_listeners", None)
    if listeners is not None:
        return _on_duration in listeners()
    state.heard.monitoring = 0
    jax.monitoring.record_event_duration_secs(_CANARY, 0.0)
    return bool(state.heard.monitoring)


def trace_starts_are_heard() -> bool:
    """Whether the starts of traces still reach us."""
    util = names.module("jax._src.util")
    if util is None or not hasattr(util, "test_event"):
        return True
    state.heard.starts = 0
    util.test_event(_CANARY)
    return bool(state.heard.starts)


def announces_starts() -> bool:
    """Whether this JAX announces the start of each trace (0.5 and later)."""
    return hasattr(names.module("jax._src.util"), "test_event_listener")


def _on_duration(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event == _CANARY:
        state.heard.monitoring = 1
        return
    sink = state.sink
    stage = STAGES.get(event)
    if sink is None or stage is None:
        return
    try:
        frame = sys._getframe(1)
        _running.settle()
        name = str(kwargs.get("fun_name", ""))
        if stage == "trace":
            if not (announces_bodies() or getattr(state.heard, "busy", False)):
                state.heard.busy = True  # to record a trace may trace: the parts of an equinox module are put together
                try:
                    _trace_seen_at_its_end(sink, frame, duration_secs)
                finally:
                    state.heard.busy = False
            sink.trace_measured(duration_secs, stack.bare(name))
            return
        call = next((stack.users_own(call, at) for call, at in stack.calls(frame)), None)
        sink.stage_ended(stage, duration_secs, stack.bare(name), call, frame)
    except Exception as error:
        sink.failed(error)


def _on_event(name: str, *args: Any) -> None:
    if name == _CANARY:
        state.heard.starts = 1
        return
    if state.chained is not None:
        state.chained(name, *args)
    sink = state.sink
    if sink is None or name not in _STARTS:
        return
    try:
        _trace_starts(sink, sys._getframe(2))
    except Exception as error:
        sink.failed(error)


def announces_bodies() -> bool:
    """Whether this JAX announces each run of a body under a trace (0.9 and later), and not only those under a jit."""
    return hasattr(names.module("jax._src.interpreters.partial_eval"), "test_event")


def announces_checkpoints() -> bool:
    """Whether this JAX announces the body of a `jax.checkpoint` (0.10 and later), as it does the other bodies."""
    import jax

    return announces_bodies() and jax.__version_info__ >= (0, 10)


def _tokens(sink: Sink, frame: FrameType) -> list[object]:
    fun = stack.fun_of(frame)
    if fun is None:
        return []
    if not announces_bodies() and getattr(fun, "__name__", "") in _EAGER and in_jax(stack.file_of(fun)):
        starts = stack.starts_of_bodies(frame)
    else:
        starts = [stack.start_of(frame, fun)] if sink.cares(fun) else []
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


def _trace_seen_at_its_end(sink: Sink, frame: FrameType, duration: float) -> None:
    """JAX 0.4.35, and the pmap of 0.8 and earlier: the one event comes when the trace is over."""
    wanted = ("stage_parallel_callable",) if announces_starts() else ("_create_pjit_jaxpr", "stage_parallel_callable")
    here: FrameType | None = frame.f_back
    for _ in range(4):
        if here is None or here.f_code.co_name in wanted:
            break
        here = here.f_back
    if here is None or here.f_code.co_name not in wanted:
        return
    for outer in reversed([at for at in stack.above(here) if at.f_code.co_name in wanted and not _running.holds(at)]):
        _trace_starts(sink, outer)  # it has started before: from here on it is known what is inside it
    error, traceback = sys.exc_info()[1], sys.exc_info()[2]
    raised = False
    while error is not None and traceback is not None:
        raised = raised or traceback.tb_frame is here
        traceback = traceback.tb_next
    running: _Open | None = _running.forget(here)
    for token in running.tokens if running is not None else _tokens(sink, here):
        sink.trace_ended(token, duration, not raised)


def running_trace(frame: FrameType | None) -> object:
    """The token of the innermost trace that runs at or above `frame`, or None."""
    running: _Open | None = _running.value_of(frame)
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
