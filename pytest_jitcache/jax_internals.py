"""The one module that touches private names of JAX.

Public is `jax.monitoring`: it tells of lowerings and compiles, and of traces at the top level. Which arguments, which
function and which place it does not tell, and a function that is first traced under an eager `grad` or inside another
trace sends no trace event at all. What is read here beyond it, all of it optional:

- `jax._src.util.test_event_listener`, which JAX calls at the start of each run of a body under a trace (JAX 0.5 and
  later); the frame that calls it knows the function, its abstract arguments and what it is traced for;
- the locals `fun`, `args`, `kwargs` of the frames `cache_miss` and `_infer_params` below it;
- `jax._src.monitoring`, for whether our listener is still there;
- `jax._src.config`, for the settings that are part of the trace cache's key, and to learn that jit is switched off;
- the state by which a jitted function is pickled, for the wrap form: it names the function that is called on a cache miss;
- `jax._src.source_info_util.register_exclusion`, so that the places which JAX itself names are the user's and not ours;
- the names of the loggers to which JAX explains a cache miss, and the locals of the function that does, for `-vv`.

Whatever is missing in some version of JAX is listed by `lost()`; it makes the record poorer and never wrong. Nothing in
here raises into JAX.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from pytest_jitcache.frames import Running, note_on
from pytest_jitcache.places import OURS, in_jax, is_library, is_machinery, is_wrapping

__tracebackhide__ = True

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
STAGES = {TRACE: "trace", LOWER: "lower", COMPILE: "compile"}

_CANARY = "/pytest_jitcache/canary"
_STARTS = frozenset({"trace_to_jaxpr", "create_pjit_jaxpr"})
_CALL_FRAMES = frozenset(
    {"_trace_for_jit", "_infer_params", "_infer_params_impl", "_infer_params_internal", "infer_params", "cache_miss"}
)
_CALL_FILES = ("pjit.py", "partial_eval.py", "profiler.py", "util.py")  # also traceback_util.py and linear_util.py
_INSPECTIONS = frozenset({"jit_trace", "trace", "jit_lower", "lower", "jit_eval_shape", "eval_shape", "make_jaxpr_f"})
# JAX 0.8 and earlier announce the jit of an eager control-flow primitive, but not the traces of its bodies: the function
# that the user called has these as parameters.
_EAGER = frozenset({"scan", "while", "cond"})
_BODIES = {
    "scan": ("f",), "map": ("f",), "while_loop": ("cond_fun", "body_fun"), "fori_loop": ("body_fun",),
    "cond": ("true_fun", "false_fun"), "_cond": ("true_fun", "false_fun"), "switch": ("branches",),
}  # fmt: skip
_OPTIONS = (
    "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline", "device",
    "backend", "use_resource_env", "compiler_options_kvs",
)  # fmt: skip


@dataclass
class Call:
    """What the frames of a cache miss know about the call that missed."""

    fun: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    arrays_only: bool = False  # what is no array is static, as in eqx.filter_jit
    signature: inspect.Signature | None = None


@dataclass
class Start:
    """One run of a body under a trace begins. Lives for the time of the notification only."""

    fun: Any
    traced_for: str
    frame: FrameType
    call: Call | None
    avals: tuple[tuple[Any, ...], dict[str, Any]] | None
    made: Call | None = None  # as JAX sees it, where `call` is the one that the user made of a library's jit
    flat: bool = False  # the abstract arguments are those of the primitive, not of the function


class Sink(Protocol):
    """Who is told."""

    def cares(self, fun: Any) -> bool: ...

    def trace_started(self, start: Start) -> object: ...

    def trace_ended(self, token: Any, seconds: float, succeeded: bool) -> None: ...

    def stage_ended(self, stage: str, seconds: float, fun_name: str, call: Call | None, frame: FrameType) -> None: ...

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
    lost: list[str] = field(default_factory=list)
    hooked: bool = False


_state = _State()


def _failed(error: BaseException) -> None:
    if _state.sink is not None:
        _state.sink.failed(error)


_running = Running(_failed)


# --- listening ------------------------------------------------------------------------------------------------------


def listen(sink: Sink) -> None:
    """Send everything to `sink` from now on. May be called again at any time; repairs what others have removed."""
    import jax.monitoring

    _state.sink = sink
    if not monitoring_is_heard():
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
    util = _module("jax._src.util")
    if util is not None and hasattr(util, "test_event_listener"):
        if not trace_starts_are_heard():
            present = util.test_event_listener
            _state.chained = present if present is not _on_event else None
            util.test_event_listener = _on_event
    elif not _state.lost:
        _state.lost.append("this JAX does not announce the start of a trace: traces are seen when they end")
    _hook_disable_jit()
    _keep_out_of_places()


def monitoring_is_heard() -> bool:
    """Whether events of `jax.monitoring` still reach us; `jax.monitoring.clear_event_listeners()` ends that."""
    import jax.monitoring

    listeners = getattr(_module("jax._src.monitoring"), "get_event_duration_listeners", None)
    if listeners is not None:
        return _on_duration in listeners()
    _state.heard.monitoring = 0
    jax.monitoring.record_event_duration_secs(_CANARY, 0.0)
    return bool(_state.heard.monitoring)


def trace_starts_are_heard() -> bool:
    """Whether the starts of traces still reach us."""
    util = _module("jax._src.util")
    if util is None or not hasattr(util, "test_event"):
        return True
    _state.heard.starts = 0
    util.test_event(_CANARY)
    return bool(_state.heard.starts)


def announces_starts() -> bool:
    """Whether this JAX announces the start of each trace (0.5 and later)."""
    return hasattr(_module("jax._src.util"), "test_event_listener")


def lost() -> list[str]:
    """What this version of JAX does not tell, one line each."""
    return list(_state.lost)


def _on_duration(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event == _CANARY:
        _state.heard.monitoring = 1
        return
    sink = _state.sink
    stage = STAGES.get(event)
    if sink is None or stage is None:
        return
    try:
        frame = sys._getframe(1)
        _running.settle()
        name = str(kwargs.get("fun_name", ""))
        if stage == "trace":
            if not (announces_bodies() or getattr(_state.heard, "busy", False)):
                _state.heard.busy = True  # to record a trace may trace: the parts of an equinox module are put together
                try:
                    _trace_seen_at_its_end(sink, frame, duration_secs)
                finally:
                    _state.heard.busy = False
            sink.trace_measured(duration_secs, _bare(name))
            return
        call = next((_users_own(call, at) for call, at in _calls(frame)), None)
        sink.stage_ended(stage, duration_secs, _bare(name), call, frame)
    except Exception as error:
        sink.failed(error)


def _on_event(name: str, *args: Any) -> None:
    if name == _CANARY:
        _state.heard.starts = 1
        return
    if _state.chained is not None:
        _state.chained(name, *args)
    sink = _state.sink
    if sink is None or name not in _STARTS:
        return
    try:
        _trace_starts(sink, sys._getframe(2))
    except Exception as error:
        sink.failed(error)


def announces_bodies() -> bool:
    """Whether this JAX announces each run of a body under a trace (0.9 and later), and not only those under a jit."""
    return hasattr(_module("jax._src.interpreters.partial_eval"), "test_event")


def announces_checkpoints() -> bool:
    """Whether this JAX announces the body of a `jax.checkpoint` (0.10 and later), as it does the other bodies."""
    import jax

    return announces_bodies() and jax.__version_info__ >= (0, 10)


def _tokens(sink: Sink, frame: FrameType) -> list[object]:
    fun = _fun_of(frame)
    if fun is None:
        return []
    if not announces_bodies() and getattr(fun, "__name__", "") in _EAGER and in_jax(_file_of(fun)):
        starts = _starts_of_bodies(frame)
    else:
        starts = [_start_of(frame, fun)] if sink.cares(fun) else []
    found = (sink.trace_started(start) for start in starts)
    return [token for token in found if token is not None]


def _trace_starts(sink: Sink, frame: FrameType) -> None:
    _running.settle()
    tokens = _tokens(sink, frame)
    if not tokens:
        return
    _running.watch(frame, _Open(tokens, time.perf_counter()), _end)


def _end(running: _Open, succeeded: bool) -> None:
    if _state.sink is not None:
        for token in running.tokens:
            _state.sink.trace_ended(token, time.perf_counter() - running.began, succeeded)


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
    for outer in reversed([at for at in _above(here) if at.f_code.co_name in wanted and not _running.holds(at)]):
        _trace_starts(sink, outer)  # it has started before: from here on it is known what is inside it
    error, traceback = sys.exc_info()[1], sys.exc_info()[2]
    raised = False
    while error is not None and traceback is not None:
        raised = raised or traceback.tb_frame is here
        traceback = traceback.tb_next
    running: _Open | None = _running.forget(here)
    for token in running.tokens if running is not None else _tokens(sink, here):
        sink.trace_ended(token, duration, not raised)


def _above(frame: FrameType) -> Iterator[FrameType]:
    """The frames of JAX above one."""
    at = frame.f_back
    while at is not None:
        if in_jax(at.f_code.co_filename):
            yield at
        at = at.f_back


def called_by_user(frame: FrameType | None) -> bool:
    """Whether the jitted function that is traced in a frame was called by the user's own line, and not by JAX's."""
    while frame is not None and frame.f_code.co_filename.endswith(_CALL_FILES) and in_jax(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and not is_library(frame.f_code.co_filename)


def only_inspected(frame: FrameType | None) -> bool:
    """Whether a trace was asked for to be looked at (`.lower`, `.trace`, `.eval_shape`, `make_jaxpr`), not by a call."""
    while frame is not None and in_jax(frame.f_code.co_filename):
        if frame.f_code.co_name == "cache_miss":
            return False
        if frame.f_code.co_name in _INSPECTIONS:
            return True
        frame = frame.f_back
    return False


def running_trace(frame: FrameType | None) -> object:
    """The token of the innermost trace that runs at or above `frame`, or None."""
    running: _Open | None = _running.value_of(frame)
    return running.tokens[0] if running is not None else None


def settle() -> None:
    """Notice the end of each trace that is over, also where somebody keeps its frame alive."""
    _running.settle_all()


def evict(fun: Any) -> None:
    """Drop everything that JAX's caches hold for a function, beyond what its `clear_cache()` drops."""
    util = _module("jax._src.util")
    for name in ("_caches", "_weakref_lru_caches"):
        for cache in list(getattr(util, name, ())):
            drop = getattr(cache, "evict_weakref", None) or getattr(cache, "evict_function", None)
            if drop is not None:
                try:
                    drop(fun)
                except Exception:
                    continue


def may_be_warm(function: Any) -> bool:
    """Whether calls of a jitted function may be in its cache; True for what is not made by `jax.jit`."""
    try:
        return bool(function._cache_size())
    except Exception:
        return True


# --- the wrap form --------------------------------------------------------------------------------------------------


def twin(function: Any, after_miss: Callable[[], None]) -> Any:
    """A twin of a jitted function with the same caches, which calls `after_miss` when a call of it was not found in them.

    A warm call of it runs no Python, as one of the function itself. None for what is not made by `jax.jit`.
    """
    try:
        state = function.__getstate__()
        missed = state["cache_miss"]

        def cache_miss(*args: Any, **kwargs: Any) -> Any:
            result = missed(*args, **kwargs)
            _running.settle()
            after_miss()
            return result

        kind: Any = type(function)
        made = kind.__new__(kind)
        made.__setstate__({**state, "cache_miss": cache_miss})
        return made
    except Exception:
        return None


# --- what JAX itself says -------------------------------------------------------------------------------------------

_EXPLAIN = "jax_explain_cache_misses"
_EXPLAINERS = ("jax._src.pjit", "jax._src.interpreters.partial_eval", "jax._src.compiler", "jax._src.compilation_cache")
_EXPLANATION = "TRACING CACHE MISS"
_RAISED_TO_WARNINGS = ("PERSISTENT COMPILATION CACHE MISS", "Not writing persistent cache entry")


@functools.cache
def _keep_out_of_places() -> None:
    """Our frames are no user's: without them the place of a call that goes through a wrap is what it is without one."""
    try:
        _module("jax._src.source_info_util").register_exclusion(OURS)
    except Exception:
        _state.lost.append("the places that this JAX names itself may be ours, where a wrapped function is called")


def explains_misses() -> bool:
    """Whether this JAX can explain why a call was not found in the trace cache."""
    import jax

    return hasattr(jax.config, _EXPLAIN)


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
                self.before = bool(getattr(jax.config, _EXPLAIN))
                for name in _EXPLAINERS:
                    logging.getLogger(name).addFilter(self)
                jax.config.update(_EXPLAIN, True)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        import jax

        with self.lock:
            self.asked -= 1
            if not self.asked and explains_misses():
                jax.config.update(_EXPLAIN, self.before)  # type: ignore[no-untyped-call]
                for name in _EXPLAINERS:
                    logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        ours = not self.before and not self._asked_for_by_user()
        if not text.startswith(_EXPLANATION):
            return not (ours and text.startswith(_RAISED_TO_WARNINGS))
        if _state.sink is not None:
            try:
                _state.sink.explained(_explained_fun(sys._getframe(1)), text)
            except Exception as error:
                _state.sink.failed(error)
        return not ours

    @staticmethod
    def _asked_for_by_user() -> bool:
        """Whether a test has switched the explanations on for its thread, under `jax.explain_cache_misses(True)`."""
        try:
            return _module("jax._src.config").explain_cache_misses.get_local() is True
        except Exception:
            return False


explanations = _Explanations()


def _explained_fun(frame: FrameType | None) -> Any:
    """The function whose miss JAX is explaining: a local of the function that does."""
    while frame is not None:
        if in_jax(frame.f_code.co_filename) and frame.f_code.co_name.startswith("explain"):
            return _fun_of(frame) or frame.f_locals.get("f")
        frame = frame.f_back
    return None


# --- reading frames -------------------------------------------------------------------------------------------------


def _fun_of(frame: FrameType) -> Any:
    fun: Any = frame.f_locals.get("fun")
    transformed = hasattr(fun, "transforms") and hasattr(fun, "f")  # linear_util.WrappedFun of JAX 0.8 and earlier
    return fun.f if transformed else fun


def _start_of(frame: FrameType, fun: Any) -> Start:
    local = frame.f_locals
    debug = local.get("debug_info")
    traced_for = str(getattr(debug, "traced_for", "") or "jit")
    call = made = None
    for found, at in _calls(frame):
        if found.fun is fun:
            call, made = _users_own(found, at), found
            break
        if traced_for != "jit":
            break
    avals = None
    in_avals = local.get("in_avals")
    if call is None and in_avals is not None and hasattr(in_avals, "unflatten"):
        try:
            if not local.get("fun_takes_flat_tree_arg"):
                args, kwargs = in_avals.unflatten()
                avals = (tuple(args), dict(kwargs))
        except Exception:
            avals = None
    return Start(fun, traced_for, frame, call, avals, made)


def _users_own(call: Call, frame: FrameType) -> Call:
    """The call as the user made it, where a library has jitted a function of its own around the user's."""
    return (_equinox_call(frame) if "equinox" in _file_of(call.fun) else None) or call


def eager_bodies(frame: FrameType) -> tuple[str, list[Any]]:
    """The control-flow function whose primitive is being jitted or compiled below a frame, and the bodies it was given."""
    entry: FrameType | None = None
    at = frame.f_back
    while at is not None and is_machinery(at.f_code.co_filename):
        if at.f_code.co_name in _BODIES and "control_flow" in at.f_code.co_filename:
            entry = at if any(name in at.f_locals for name in _BODIES[at.f_code.co_name]) else entry
        at = at.f_back
    if entry is None:
        return "", []
    bodies: list[Any] = []
    for name in _BODIES[entry.f_code.co_name]:
        value = entry.f_locals.get(name)
        bodies += value if isinstance(value, list | tuple) else [value]
    return entry.f_code.co_name.lstrip("_"), [body for body in bodies if callable(body)]


def _starts_of_bodies(frame: FrameType) -> list[Start]:
    """A start for each body of an eager control-flow function, with the primitive's flat arguments."""
    flat = tuple(frame.f_locals.get("in_type") or ())
    kind, bodies = eager_bodies(frame)
    return [Start(body, kind, frame, None, (flat, {}), flat=True) for body in bodies]


def _calls(frame: FrameType | None) -> Iterator[tuple[Call, FrameType]]:
    """The calls that missed, from the innermost out, as far as JAX's (or a wrapper's) own frames reach."""
    limit = 60
    while frame is not None and limit:
        code = frame.f_code
        if in_jax(code.co_filename):
            if code.co_name in _CALL_FRAMES:
                local = frame.f_locals
                if "fun" in local and "args" in local and "kwargs" in local:
                    yield _call_of(local), frame
        elif limit < 60 and not is_machinery(code.co_filename):
            return
        frame = frame.f_back
        limit -= 1


def _call_of(local: Mapping[str, Any]) -> Call:
    info = local.get("ji") or local.get("jit_info")
    options = tuple((name, repr(value)) for name in _OPTIONS if not _is_default(value := getattr(info, name, None)))
    return Call(
        local["fun"],
        local["args"],
        local["kwargs"],
        tuple(getattr(info, "static_argnums", ()) or ()),
        tuple(getattr(info, "static_argnames", ()) or ()),
        options,
        signature=getattr(info, "fun_signature", None),
    )


def _is_default(option: Any) -> bool:
    return not option or getattr(option, "name", "") == "AUTO"


def _file_of(fun: Any) -> str:
    return str(getattr(getattr(fun, "__code__", None), "co_filename", ""))


def _equinox_call(frame: FrameType | None) -> Call | None:
    """`eqx.filter_jit` jits a function of its own; its `_call` frame knows the user's."""
    limit = 20
    while frame is not None and limit:
        if frame.f_code.co_name == "_call" and "equinox" in frame.f_code.co_filename:
            local = frame.f_locals
            wrapper = local["jit_wrapper" if "jit_wrapper" in local else "self"]  # "self" up to equinox 0.11
            return Call(
                wrapper.__wrapped__, local["args"], local["kwargs"], arrays_only=True,
                signature=getattr(wrapper, "_signature", None),
            )  # fmt: skip
        frame = frame.f_back
        limit -= 1
    return None


def traced_in_same_call(frame: FrameType, body: object) -> bool:
    """Whether the user's one call that leads to a trace has traced the same body before.

    `scan` and `while_loop` do so to promote weak types, flax to learn what a lifted `scan` leaves alone.
    """
    entry = frame
    above = frame.f_back
    while above is not None and is_machinery(above.f_code.co_filename):
        if is_wrapping(above.f_code.co_filename):
            entry = above
        above = above.f_back
    traced = note_on(entry).bodies
    seen = body in traced
    traced.add(body)
    return seen


def _bare(name: str) -> str:
    found = re.fullmatch(r"\w+\((.*)\)", name)
    return found.group(1) if found else name


# --- settings -------------------------------------------------------------------------------------------------------


def _module(name: str) -> Any:
    try:
        __import__(name)
    except Exception:
        return None
    return sys.modules.get(name)


@functools.cache
def _settings() -> tuple[tuple[str, Any], ...]:
    """The settings of JAX by name: everything in these modules that holds a value and can be swapped for a time."""
    found = {}
    for module in map(_module, ("jax._src.config", "jax._src.mesh", "jax._src.core")):
        for name in dir(module):
            value = getattr(module, name, None)
            kind = type(value)
            if hasattr(kind, "value") and hasattr(kind, "swap_local" if hasattr(kind, "swap_local") else "_set"):
                found[name] = value
    return tuple(found.items())


_snapshots: dict[Any, tuple[tuple[str, str], ...]] = {}


def settings() -> tuple[tuple[str, str], ...]:
    """JAX's settings by name, one snapshot for each state of what is part of the key of the trace cache.

    Parts of that key that have no name follow as "#0", "#1", ... Empty where JAX does not say.
    """
    config = _module("jax._src.config")
    context = getattr(config, "trace_context", None)
    if context is None:
        return ()
    try:
        key = context()
        known = _snapshots.get(key)
        if known is None:
            if len(_snapshots) > 256:
                _snapshots.clear()
            named = [(name, _text(state)) for name, state in _settings()]
            rest = [(f"#{n}", _cut(part)) for n, part in enumerate(key)] if isinstance(key, tuple) else []
            known = _snapshots[key] = (*named, *rest)
        return known
    except Exception:
        return ()


def _text(state: Any) -> str:
    try:
        return _cut(state.value)
    except Exception:
        return "?"


def _cut(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:79] + "…"


_cached_canary: Callable[[], object] | None = None


def cache_epoch() -> object:
    """An object that changes whenever JAX's caches are cleared (`jax.clear_caches()`)."""
    global _cached_canary
    if _cached_canary is None:
        util = _module("jax._src.util")
        try:
            _cached_canary = util.cache(max_size=1, trace_context_in_key=False)(_new_object)
        except Exception:
            _state.lost.append("this JAX does not let us notice jax.clear_caches()")
            _cached_canary = functools.cache(_new_object)
    return _cached_canary()


class _Epoch:
    __slots__ = ()


def _new_object() -> object:
    return _Epoch()


def jit_is_disabled() -> bool:
    """Whether jit is switched off on this thread."""
    import jax

    config = _module("jax._src.config")
    try:
        return bool(config.disable_jit.value)
    except Exception:
        return bool(getattr(jax.config, "jax_disable_jit", False))


def _hook_disable_jit() -> None:
    if _state.hooked:
        return
    _state.hooked = True
    config = _module("jax._src.config")
    try:
        state = config.disable_jit
        thread_hook, global_hook = state._update_thread_local_hook, state._update_global_hook
        state._update_thread_local_hook = functools.partial(_jit_switched, thread_hook)
        state._update_global_hook = functools.partial(_jit_switched, global_hook)
    except Exception:
        _state.lost.append("this JAX does not let us notice that jit is switched off inside a block")


def _jit_switched(chained: Callable[[Any], None] | None, value: Any) -> None:
    if chained is not None:
        chained(value)
    sink = _state.sink
    if sink is not None:
        try:
            sink.jit_switched(jit_is_disabled())
        except Exception as error:
            sink.failed(error)
