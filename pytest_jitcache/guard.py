"""`traced_once`: the wrap form and the block form, and the verdict of both."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal, overload

from pytest_jitcache import bodies, jax_internals, report
from pytest_jitcache.errors import JitcacheWarning, RetraceError
from pytest_jitcache.identity import Unwrapped, is_jitted, is_nested, unwrap
from pytest_jitcache.places import OURS, is_machinery
from pytest_jitcache.recorder import CONTROL_FLOW, Trace, Watcher, recorder, site_of

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only

explain = False  # whether guards ask JAX for its own words about each trace; set by pytest under -vv

Per = Literal["signature", "total"]


class TraceRecord(Sequence[Trace]):
    """The traces that a guard has counted, in the order in which they ended. Stays readable after a failure.

    Attributes:
        compiles: the XLA compiles of the guarded functions, in the same form. Filled where `max_compiles` is given.
    """

    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self.compiles: list[Trace] = []

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trace]: ...
    def __getitem__(self, index: int | slice) -> Trace | list[Trace]:
        return self._traces[index]

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(tuple(self._traces))

    def __repr__(self) -> str:
        inner = ", ".join(f"{t.name} at {t.call_site}" for t in self._traces[:4])
        return f"<{len(self)} trace{'' if len(self) == 1 else 's'}{': ' + inner if inner else ''}>"

    def __str__(self) -> str:
        return "\n".join(f"{t} at {t.call_site}" for t in self._traces) or "no traces"


@dataclass
class Target:
    """One function that the user named."""

    name: str
    function: Any
    jitted: bool
    fun: Any  # the function under the jit
    codes: frozenset[CodeType]
    unwrapped_layers: tuple[Any, ...]
    under: tuple[Any, ...]  # everything under the jit, from the outside in
    called: bool = False
    traced: bool = False

    def matches(self, function: Unwrapped) -> bool:
        """Whether a traced callable is this function, or is wrapped around it."""
        if any(_same(o, self.fun) for o in function.objects) or any(function.objects[0] is o for o in self.under):
            return True
        if not function.found and function.layers and function.layers == self.unwrapped_layers[-len(function.layers) :]:
            return True
        return not self.jitted and bool(self.codes.intersection(function.codes))


def _instead(value: object) -> str:
    """What to pass in place of a value that is no function."""
    if isinstance(value, str):
        return f"pass the function itself, not its name {value!r}"
    if isinstance(value, list | tuple | set | frozenset):
        return "pass the functions one by one"
    return "pass the function itself, not the result of calling it"


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if (
        isinstance(b, types.MethodType | functools.partial)
        or type(a) is not type(b)
        or isinstance(b, types.FunctionType)
    ):
        return isinstance(b, types.MethodType) and type(a) is type(b) and bool(a == b)
    try:
        return _has_own_equality(type(b)) and bool(a == b)
    except Exception:
        return False


def _has_own_equality(kind: Any) -> bool:
    return kind.__eq__ is not object.__eq__


def _target(function: Any) -> Target:
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"assert_traced_once takes functions, got {kind}: {_instead(function)}.")
    taken = unwrap(function)
    jitted = any(is_jitted(o) for o in taken.objects) and not _user_code_first(taken)
    fun: Any = function
    under: tuple[Any, ...] = ()
    if jitted:
        index = next(n for n, o in enumerate(taken.objects) if is_jitted(o))
        under = taken.objects[index + 1 :]
        fun = under[0] if under else function
    codes = frozenset(taken.codes[-1:])
    return Target(taken.name, function, jitted, fun, codes, taken.layers, under)


def _user_code_first(taken: Unwrapped) -> bool:
    for o in taken.objects:
        if isinstance(o, types.FunctionType):
            return not is_machinery(o.__code__.co_filename)
        if is_jitted(o):
            return False
    return False


def _clear(function: Any) -> None:
    """Make a jitted function start cold, with everything that it is wrapped around."""
    import jax

    for one in (
        function,
        getattr(function, "jitted_fn", None),
        getattr(function, "_cached", None),
        *unwrap(function).objects,
    ):
        clear = getattr(one, "clear_cache", None)
        try:
            if callable(clear):
                clear()
            elif isinstance(one, types.FunctionType) and not is_machinery(one.__code__.co_filename):
                jax.jit(one).clear_cache()  # type: ignore[attr-defined]
                jax_internals.evict(one)
        except Exception:
            continue


_active: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard(Watcher):
    """Watches from `start` to `stop` and judges."""

    def __init__(
        self,
        functions: tuple[Any, ...],
        max_traces: int = 1,
        per: Per = "signature",
        max_compiles: int | None = None,
        info: str | None = None,
    ) -> None:
        _check_limit("max_traces", max_traces)
        if max_compiles is not None:
            _check_limit("max_compiles", max_compiles)
        if per not in ("signature", "total"):
            raise ValueError(f"per must be 'signature' or 'total', got {per!r}.")
        if info is not None and not isinstance(info, str):
            raise TypeError(f"info must be a string, got {type(info).__name__}.")
        self.targets = [_target(function) for function in functions]
        self.max_traces, self.per, self.max_compiles, self.info = max_traces, per, max_compiles, info
        self.wants_compiles = max_compiles is not None
        self.record = TraceRecord()
        self.alerts: list[tuple[str, list[Trace]]] = []
        self.problems: list[str] = []
        self.disabled: list[str] = []
        self.running = False
        self.judged = False
        self.lock = threading.RLock()
        self._matched: dict[int, Trace] = {}  # running; the value keeps the id from being used again
        self._owners: dict[object, Trace] = {}  # the last trace of a function, by its id and by its name
        self._groups: dict[object, list[Trace]] = {}
        self._compile_groups: dict[object, list[Trace]] = {}
        self._inlined: dict[int, list[Trace]] = {}
        self._clears: dict[object, int] = {}
        self._home: CodeType | None = None
        self._thread = threading.get_ident()
        self.raised_elsewhere: RetraceError | None = None
        self._disabled_at_start = False
        self._explaining = False
        plain = frozenset(code for t in self.targets if not t.jitted for code in t.codes)
        jitted = frozenset(code for t in self.targets if t.jitted for code in t.codes)
        self._plain_calls = bodies.Calls(plain, self._plain_called)
        self._off_calls = bodies.Calls(jitted, self._off_called)
        self._plain = plain

    # -- start and stop

    def start(self, caller: FrameType | None, home: CodeType | None = None) -> None:
        """Make the functions cold and watch.

        Args:
            caller: the frame that opens the block or makes the first call; its lines are the test's own.
            home: its code, where it does not run yet.
        """
        self._home = caller.f_code if caller is not None else home
        self.running = True
        for target in self.targets:
            if target.jitted:
                _clear(target.function)
                recorder.forget(target.codes)
                for other in list(_active):
                    if other is not self:
                        other.cleared(target)
        recorder.watch(self)
        _active.add(self)
        if explain:
            self._explaining = True
            jax_internals.explanations.start()
        self._disabled_at_start = jax_internals.jit_is_disabled()
        self._plain_calls.start()
        if self._disabled_at_start:
            self._off_calls.start()

    def stop(self) -> None:
        if not self.running:
            return
        self.running = False
        self._plain_calls.stop()
        self._off_calls.stop()
        if self._explaining:
            jax_internals.explanations.stop()
        if not jax_internals.monitoring_is_heard():
            self.problems.append(
                "JAX's monitoring listeners were removed while the guard was watching "
                "(jax.monitoring.clear_event_listeners()), so traces and compiles may be missing."
            )
        if not jax_internals.trace_starts_are_heard():
            self.problems.append(
                "JAX's test event listener was replaced while the guard was watching: traces may be missing."
            )
        recorder.unwatch(self)
        _active.discard(self)

    def cleared(self, target: Target) -> None:
        """Another guard has cleared the cache of a function: the next trace of it starts a new count here."""
        with self.lock:
            for code in target.codes:
                self._clears[code] = self._clears.get(code, 0) + 1

    # -- events

    def begin(self, trace: Trace, function: Unwrapped, frame: FrameType) -> None:
        if not self.running:
            return
        matched = self._matches(trace, function, frame)
        if matched:
            self._matched[id(trace)] = trace
        elif self._plain and not self._plain_on_stack(frame):
            self._plain_calls.start()
        if trace.test_site is None and self._home is not None:
            self._set_test_site(trace, frame)

    def _set_test_site(self, trace: Trace, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is self._home:
                trace.test_site = site_of(frame)
                return
            frame = frame.f_back

    def _matches(self, trace: Trace, function: Unwrapped, frame: FrameType) -> bool:
        if not self.targets:
            return function.found
        outer = trace.inside
        if outer is not None and not outer.body and id(outer) in self._matched and outer.codes[-1:] == trace.codes[-1:]:
            return True  # the outer one is a wrapper, and this is the run of the body
        hit = False
        for target in self.targets:
            if target.matches(function):
                target.called = hit = True
        if not hit and function.found and self._plain:
            on_stack = self._codes_on_stack(frame)
            for target in self.targets:
                if not target.jitted and target.codes & on_stack:
                    target.called = hit = True
        return hit

    def _codes_on_stack(self, frame: FrameType | None) -> set[CodeType]:
        found: set[CodeType] = set()
        while frame is not None:
            if frame.f_code in self._plain:
                found.add(frame.f_code)
            frame = frame.f_back
        return found

    def _plain_on_stack(self, frame: FrameType | None) -> bool:
        return bool(self._codes_on_stack(frame))

    def end(self, trace: Trace) -> None:
        with self.lock:
            inlined = self._inlined.pop(id(trace), ())
            if self._matched.pop(id(trace), None) is not None and self.running and trace.body:
                self._count(trace)
            for inline in inlined:
                inline.finished = True
                self._count(inline)

    def names(self, fun: Any) -> bool:
        return self.running and any(fun is target.fun for target in self.targets if target.jitted)

    def judges(self, trace: Trace) -> bool:
        return id(trace) in self._matched

    def _count(self, trace: Trace) -> None:
        self.record._traces.append(trace)
        self._owners[trace.object_id] = self._owners[trace.name] = trace
        for target in self.targets:
            target.traced = target.traced or bool(target.codes.intersection(trace.codes)) or not target.codes
        self._add(self._groups, trace, self.max_traces, "traced")

    def _add(self, groups: dict[object, list[Trace]], trace: Trace, allowed: int, verb: str) -> None:
        which = self._which(trace)
        keys: list[object] = [None] if self.per == "total" else [trace.signature.key]
        if self.per == "signature" and trace.signature.default_key != trace.signature.key:
            keys.append(trace.signature.default_key)
        for key in keys:
            group = groups.setdefault((which, key), [])
            group.append(trace)
            if len(group) > allowed:
                trace.cause = report.nearest(group, verb)[1][0].title
                self.alerts.append((verb, group))

    def _which(self, trace: Trace) -> object:
        clears = tuple(self._clears.get(code, 0) for code in trace.codes)
        which: object = (trace.cache, trace.stage == "transpose", clears)
        outer = trace.around if trace.inline_of is None else trace.inside
        if outer is not None and (trace.inline_of is not None or self._made_inside(trace)):
            which = (which, self._which(outer), outer.signature.key)
        return which

    def _made_inside(self, trace: Trace) -> bool:
        """Whether what was traced inside another trace was made there, so that it is traced once for each trace of that."""
        if any(target.jitted and target.codes.intersection(trace.codes) for target in self.targets):
            return False
        return not (trace.kinds[:1] in (("function",), ("lambda",)) and trace.codes and not is_nested(trace.codes[0]))

    def stage(
        self,
        stage: str,
        seconds: float,
        name: str,
        fun: Any,
        compiled: Trace | None,
        function: Unwrapped | None,
        frame: FrameType,
    ) -> None:
        if not self.running:
            return
        with self.lock:
            owner = self._owners.get(name if fun is None else id(fun))
            if owner is not None and fun is not None and owner.ref() is not fun:
                owner = None  # the id of one that is gone
            if owner is not None:
                owner.seconds[stage] = owner.seconds.get(stage, 0.0) + seconds
                owner.compiles += stage == "compile"
            if stage != "compile" or self.max_compiles is None:
                return
            if compiled is None and owner is not None and fun is None:
                compiled = _compile_by_name(owner, frame)
            elif compiled is None or function is None or not self._matches(compiled, function, frame):
                return
            if compiled is not None:
                self._count_compile(compiled, frame, self.max_compiles)

    def loop_compiled(self, primitive: str, frame: FrameType) -> None:
        """An eager control-flow function was compiled: it counts for that of its bodies that was traced last."""
        if not self.running or self.max_compiles is None:
            return
        bodies = [unwrap(body).codes[-1:] for body in jax_internals.eager_bodies(frame)[1]]
        with self.lock:
            for trace in reversed(self.record):
                if trace.codes and trace.codes[-1:] in bodies and trace.traced_for in CONTROL_FLOW[primitive]:
                    self._count_compile(_compile_by_name(trace, frame), frame, self.max_compiles)
                    return

    def _count_compile(self, compiled: Trace, frame: FrameType, allowed: int) -> None:
        self._set_test_site(compiled, frame)
        self.record.compiles.append(compiled)
        self._add(self._compile_groups, compiled, allowed, "compiled")

    def jit_switched(self, off: bool) -> None:
        if off and self.running:
            self._off_calls.start()

    def lost(self, error: BaseException) -> None:
        if len(self.problems) < 3:
            self.problems.append(f"a trace could not be recorded ({type(error).__name__}: {error}).")

    # -- calls

    def _off_called(self, frame: FrameType) -> bool:
        if self.running and jax_internals.jit_is_disabled() and jax_internals.running_trace(frame) is None:
            self._note_disabled(frame)
            return False
        return True

    def _note_disabled(self, frame: FrameType) -> None:
        for target in self.targets:
            if frame.f_code in target.codes:
                target.called = True
                if target.name not in self.disabled:
                    self.disabled.append(target.name)

    def _plain_called(self, frame: FrameType) -> bool:
        if not self.running:
            return False
        for target in self.targets:
            if frame.f_code in target.codes:
                target.called = True
        if jax_internals.jit_is_disabled():
            self._note_disabled(frame)
        running = jax_internals.running_trace(frame)
        if isinstance(running, Trace) and id(running) not in self._matched:
            with self.lock:
                mine = self._inlined.setdefault(id(running), [])
                if all(t.inline_of is not frame.f_code for t in mine):
                    mine.append(recorder.inlined(frame, running))
        if sys.version_info >= (3, 12):
            return True
        return any(not t.called for t in self.targets if not t.jitted)

    # -- verdict

    def raise_alert(self) -> None:
        """Raise for the first group that went over its limit, with all its traces so far."""
        verb = self.alerts[0][0]
        group = _outermost([group for other, group in self.alerts if other == verb])[0]
        self.judged = True
        error = self.error(verb, group)
        self.alerts.clear()
        if threading.get_ident() != self._thread:
            self.raised_elsewhere = error
        raise error

    def error(self, verb: str, group: list[Trace]) -> RetraceError:
        allowed = self.max_traces if verb == "traced" else self.max_compiles or 0
        error = RetraceError(
            report.retraced(verb, group, allowed, self.per, self.info),
            self.record,
            report.everything(group, self._explaining),
        )
        site = group[-1].test_site
        if site is not None:
            error.line = site.line
        return error

    def worst(self) -> tuple[str, list[Trace]] | None:
        for verb, groups, allowed in (
            ("traced", self._groups, self.max_traces),
            ("compiled", self._compile_groups, self.max_compiles),
        ):
            if allowed is None:
                continue
            over = [group for group in _across_threads(groups) if len(group) > allowed]
            if over:
                return verb, max(_outermost(over), key=len)
        return None

    def judge(self) -> None:
        """Raise or warn, once everything has been seen."""
        self.judged = True
        worst = self.worst()
        if worst is not None:
            raise self.error(*worst)
        names = " and ".join(t.name for t in self.targets) or "the block"
        if self.disabled or (self._disabled_at_start and not len(self.record)):
            raise RetraceError(report.disabled(" and ".join(self.disabled) or names, self.info), self.record)
        if self.problems:
            raise RetraceError(report.unjudged(names, self.problems, self.info), self.record)
        self.judge_silence()

    def judge_silence(self) -> None:
        """A guard that saw nothing is not a passed test."""
        if not self.targets:
            if not len(self.record):
                warnings.warn(JitcacheWarning(report.NOTHING_IN_BLOCK), stacklevel=3)
            return
        for target in self.targets:
            if target.traced or (not target.jitted and len(self.record)):
                continue
            if not target.called:
                warnings.warn(JitcacheWarning(report.never_called(target.name, target.jitted)), stacklevel=3)
            elif target.jitted or report.jit_in_sight(target.function) or not jax_internals.announces_starts():
                warnings.warn(JitcacheWarning(report.maybe_warm(target.name)), stacklevel=3)
            else:
                raise RetraceError(report.never_traced(target.name, self.info), self.record)


def _outermost(groups: list[list[Trace]]) -> list[list[Trace]]:
    """The groups without those that follow from another one, because they are traced inside its last trace."""
    last = {id(group[-1]) for group in groups}

    def follows(group: list[Trace]) -> bool:
        outer = group[-1].inside
        while outer is not None and id(outer) not in last:
            outer = outer.inside
        return outer is not None

    return [group for group in groups if not follows(group)] or groups


def _across_threads(groups: dict[object, list[Trace]]) -> list[list[Trace]]:
    """The groups; functions made anew on several threads at a time, all of them gone by now, are one function."""
    together: dict[object, list[list[Trace]]] = {}
    for group in groups.values():
        first = group[0]
        if first.inline_of is None:
            together.setdefault((first.layers, first.traced_for, first.signature.key), []).append(group)
    merged = list(groups.values())
    for several in together.values():
        gone = [t for group in several for t in group if t.ref() is None]
        threads = {t.thread for t in gone}
        if len(several) > 1 and len(threads) > 1:
            merged.append(sorted({id(t): t for t in gone}.values(), key=lambda t: t.number))
    return merged


def _compile_by_name(owner: Trace, frame: FrameType | None) -> Trace:
    import copy

    stage = "compile"
    while frame is not None and is_machinery(frame.f_code.co_filename):
        if "transpose" in frame.f_code.co_name:
            stage = "transpose"
        frame = frame.f_back
    compiled = copy.copy(owner)
    compiled.stage, compiled.seconds, compiled.test_site = stage, {}, None
    compiled.call_site = site_of(frame) if frame is not None else None
    return compiled


def _check_limit(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__} ({value!r}).")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")


class traced_once(functools.partial):  # type: ignore[type-arg]
    """Assert that functions are traced at most once for each signature.

    Two forms. Wrapped, it is judged at the call that retraces::

        step = traced_once(train_step)
        step(state, batch)

    As a block, it is judged when the block ends without an exception; without a function everything traced in it counts::

        with traced_once(train_step) as traces:
            run_epoch()

    Args:
        *functions: jitted functions, which start cold, or plain ones, for which everything counts that is traced while
            they run. None at all (block form): everything that is traced in the block.
        max_traces: how many traces are allowed, at least 1.
        per: "signature" counts each signature apart, "total" counts all signatures of a function together.
        max_compiles: how many XLA compiles are allowed, counted by the same `per`. None: any number.
        info: text to show in the failure.

    Raises:
        RetraceError: (an AssertionError) a function was traced or compiled too often, or could not be judged.
        TypeError, ValueError: an argument is wrong.
    """

    __module__ = "pytest_jitcache"

    # A class, so that `with` shows no foreign frame; a partial, so that a call of it runs no Python of ours.

    _guard: Guard
    _functions: tuple[Any, ...]
    _options: dict[str, Any]
    _block: bool

    def __new__(  # noqa: PYI034 - typing.Self needs Python 3.11
        cls,
        *functions: Callable[..., Any],
        max_traces: int = 1,
        per: Per = "signature",
        max_compiles: int | None = None,
        info: str | None = None,
    ) -> traced_once:
        guard = Guard(functions, max_traces, per, max_compiles, info)

        def become(judged: Callable[..., Any]) -> None:
            one = wrap()
            if one is not None:
                functools.partial.__setstate__(one, (judged, (), {}, one.__dict__))  # type: ignore[attr-defined]

        self = super().__new__(cls, _wrapped(guard, functions, become))
        wrap = weakref.ref(self)
        self._guard = guard
        self._functions = functions
        self._options = {"max_traces": max_traces, "per": per, "max_compiles": max_compiles, "info": info}
        self._block = False
        if len(functions) == 1:
            functools.update_wrapper(self, functions[0], updated=())
        for listener in created:
            listener(self)
        return self

    def __enter__(self) -> TraceRecord:
        if self._guard.running or self._guard.judged:
            self._guard = Guard(self._functions, **self._options)
        self._block = True
        self._guard.start(sys._getframe(1))
        return self._guard.record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._guard.stop()
        if kind is None:
            self._guard.judge()
        self._guard.judged = True

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", ())
        if name.startswith("_") or len(functions) != 1:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(functions[0], name)

    def __repr__(self) -> str:
        names = ", ".join(target.name for target in self._guard.targets)
        return f"<traced_once({names}): {self._guard.record!r}>"

    @property
    def traces(self) -> TraceRecord:
        """The record, as the block form yields it."""
        return self._guard.record

    def _stop(self) -> None:
        """The test has failed anyway: stop watching, without a verdict."""
        self._guard.stop()
        self._guard.judged = True

    def _close(self) -> None:
        """The end of a test, or of the fixture that made this: a wrap gets its last verdict."""
        guard = self._guard
        if self._block:
            return
        if not guard.running and not guard.judged:  # neither entered nor called
            guard.judged = True
            for target in guard.targets:
                warnings.warn(JitcacheWarning(report.never_called(target.name, target.jitted)), stacklevel=2)
            return
        guard.stop()
        elsewhere = guard.raised_elsewhere
        if elsewhere is not None and _was_lost(elsewhere):
            guard.raised_elsewhere = None
            raise elsewhere
        if not guard.judged:
            guard.judge()


def _wrapped(guard: Guard, functions: tuple[Any, ...], become: Callable[[Any], None]) -> Callable[..., Any]:
    """The wrap form: its first call starts the guard, and becomes what judges the others and costs them least."""
    judged: Any = None

    def first_call(*args: Any, **kwargs: Any) -> Any:
        nonlocal judged
        if len(functions) != 1:
            guard.judged = True
            raise TypeError(f"the wrap form of assert_traced_once takes one function, got {len(functions)}.")
        with guard.lock:  # threads may race for the first call
            if judged is None:
                caller: FrameType | None = sys._getframe(1)
                while caller is not None and caller.f_code.co_filename.startswith(OURS):
                    caller = caller.f_back
                guard.start(caller)
                judged = _judged(guard, functions[0])
                become(judged)
        return judged(*args, **kwargs)

    return first_call


def _judged(guard: Guard, function: Any) -> Callable[..., Any]:
    """A callable that calls `function` and then looks whether that call has retraced it."""
    alerts = guard.alerts

    def look() -> None:
        if alerts:
            guard.raise_alert()

    if inspect.iscoroutinefunction(function):
        return _wrapped_coroutine(guard, function)
    if inspect.isgeneratorfunction(function):
        return _wrapped_generator(guard, function)
    twin: Callable[..., Any] | None = jax_internals.twin(function, look)
    if twin is not None:
        return twin

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs) if kwargs else function(*args)
        if alerts:
            guard.raise_alert()
        return result

    return call


def _wrapped_coroutine(guard: Guard, function: Any) -> Callable[..., Any]:
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        result = await function(*args, **kwargs)
        if guard.alerts:
            guard.raise_alert()
        return result

    return awaited


def _wrapped_generator(guard: Guard, function: Any) -> Callable[..., Any]:
    def generated(*args: Any, **kwargs: Any) -> Any:
        result = yield from function(*args, **kwargs)
        if guard.alerts:
            guard.raise_alert()
        return result

    return generated


def _was_lost(error: RetraceError) -> bool:
    """Whether an exception raised on a worker thread has never come to another one."""
    traceback = error.__traceback__
    if traceback is None:
        return True
    outermost = traceback.tb_frame.f_code.co_filename.replace("\\", "/")
    return outermost.endswith(("/threading.py", "/concurrent/futures/thread.py"))


traced_once.__new__.__qualname__ = "assert_traced_once"  # the name that Python's own errors about arguments give


created: list[Callable[[traced_once], None]] = []
