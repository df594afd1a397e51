"""The watcher behind both forms: it matches what is traced with the functions that the user named, and gives the verdict."""

from __future__ import annotations

import copy
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from pytest_jitcache import bodies, report
from pytest_jitcache import report_stale as words
from pytest_jitcache.captures.proof import Captures, Kept, Which
from pytest_jitcache.errors import GuardError, JitcacheWarning, RetraceError, StaleValueError
from pytest_jitcache.guard.counting import Counting
from pytest_jitcache.guard.options import Options
from pytest_jitcache.guard.record import TraceRecord
from pytest_jitcache.guard.target import Target, target_of
from pytest_jitcache.identity import Unwrapped, unwrap
from pytest_jitcache.jax import listening, settings
from pytest_jitcache.jax.explanations import explanations
from pytest_jitcache.jax.stack import Stack
from pytest_jitcache.recorder import CONTROL_FLOW, Trace, Watcher, recorder, site_of
from pytest_jitcache.sight import jit_in_sight

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only

explain = False  # whether guards ask JAX for its own words about each trace; set by pytest under -vv


_active: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard(Watcher):
    """Watches from `start` to `stop` and judges."""

    def __init__(self, functions: tuple[Any, ...], options: Options) -> None:
        self.targets = [target_of(function) for function in functions]
        self.options = options
        self.wants_compiles = options.max_compiles is not None
        self.wants_captures = options.check_captures
        self.captures = Captures()
        self.unchanged: Callable[[], bool] | None = None  # the quick look of the wrap form; None: to be made
        self.at_each_call = False  # it is the wrap form
        self.record = TraceRecord()
        self.problems: list[str] = []
        self.disabled: list[str] = []
        self.running = False
        self.judged = False
        self.lock = threading.RLock()
        self._matched: dict[int, Trace] = {}  # running; the value keeps the id from being used again
        self._owners: dict[object, Trace] = {}  # the last trace of a function, by its id and by its name
        self._kept: dict[int, Kept] = {}  # traces that are running, with what was captured at their start
        self._inlined: dict[int, list[Trace]] = {}
        self.opened = ("<unknown>", 0)  # the file and the line of the user's at which it began
        self._registry: dict[Any, Any] = {}  # of the warnings that the user's module has given
        self._home: CodeType | None = None
        self._thread = threading.get_ident()
        self.raised_elsewhere: GuardError | None = None
        self._disabled_at_start = False
        self._explaining = False
        plain = frozenset(code for t in self.targets if not t.jitted for code in t.codes)
        jitted = frozenset(code for t in self.targets if t.jitted for code in t.codes)
        self.counting = Counting(options, jitted)
        self.alerts = self.counting.alerts
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
        self.open(caller, home)
        self.running = True
        for target in self.targets:
            if target.jitted and not self.options.warm:
                warm = target.clear()
                recorder.forget(target.codes)
                for other in list(_active):
                    if other is not self:
                        other.cleared(target, warm)
        recorder.watch(self)
        _active.add(self)
        if explain:
            self._explaining = True
            explanations.start()
        self._disabled_at_start = settings.jit_is_disabled()
        self._plain_calls.start()
        if self._disabled_at_start:
            self._off_calls.start()

    def open(self, frame: FrameType | None, home: CodeType | None = None) -> None:
        """Remember the user's line at which this guard begins; the first one that is given holds."""
        if self.opened[1]:
            return
        if frame is not None:
            self.opened = (frame.f_code.co_filename, frame.f_lineno)
            self._registry = frame.f_globals.setdefault("__warningregistry__", {})
        elif home is not None:
            self.opened = (home.co_filename, home.co_firstlineno)

    def stop(self) -> None:
        if not self.running:
            return
        listening.settle()
        if self._plain_calls.blind and not all(target.called for target in self.targets if not target.jitted):
            self.problems.append(
                "A profiler and a tracer of others have taken both places from which calls of a plain function can be seen."
            )
        self.running = False
        self._plain_calls.stop()
        self._off_calls.stop()
        if self._explaining:
            explanations.stop()
        if not listening.monitoring_is_heard():
            self.problems.append(
                "JAX's monitoring listeners were removed while the guard was watching "
                "(jax.monitoring.clear_event_listeners()), so traces and compiles may be missing."
            )
        if not listening.trace_starts_are_heard():
            self.problems.append(
                "JAX's test event listener was replaced while the guard was watching: traces may be missing."
            )
        recorder.unwatch(self)
        _active.discard(self)

    def cleared(self, target: Target, warm: bool) -> None:
        """Another guard has cleared the cache of a function: if there was something in it, the next trace is not charged."""
        with self.lock:
            if warm or any(trace.ref() is target.fun for trace in self.record):
                self.counting.cleared(target.codes)

    # -- events

    def begin(self, trace: Trace, function: Unwrapped, stack: Stack) -> None:
        if not self.running:
            return
        matched = self._matches(trace, function, stack)
        if matched:
            self._matched[id(trace)] = trace
            if self.wants_captures:
                self._note_captures(trace, function)
        elif self._plain and not stack.running(self._plain):
            self._plain_calls.start()
        if trace.test_site is None and self._home is not None:
            self._set_test_site(trace, stack)

    def _note_captures(self, trace: Trace, function: Unwrapped) -> None:
        kept = self.captures.begin(trace, function.objects)
        if kept is not None:
            self._kept[id(trace)] = kept

    def _set_test_site(self, trace: Trace, stack: Stack) -> None:
        frame = stack.frame_of(self._home)
        trace.test_site = site_of(frame) if frame is not None else trace.test_site

    def _matches(self, trace: Trace, function: Unwrapped, stack: Stack) -> bool:
        if not self.targets:
            return function.found
        outer = trace.inside
        if outer is not None and not outer.body and id(outer) in self._matched and outer.codes[-1:] == trace.codes[-1:]:
            return True  # the outer one is a wrapper, and this is the run of the body
        hit = False
        for target in self.targets:
            if target.matches(function):
                target.called = target.heard = hit = True
        if not hit and function.found and self._plain:
            on_stack = stack.running(self._plain) or self._running_elsewhere()
            for target in self.targets:
                if not target.jitted and target.codes & on_stack:
                    target.called = hit = True
        return hit

    def _running_elsewhere(self) -> set[CodeType]:
        """On a worker thread: the plain functions that run on other threads, and so may have given it the work."""
        if threading.current_thread() is threading.main_thread():
            return set()
        here = threading.get_ident()
        frames = [frame for thread, frame in sys._current_frames().items() if thread != here]
        return set().union(*(Stack(frame).running(self._plain) for frame in frames))

    def end(self, trace: Trace) -> None:
        with self.lock:
            inlined = self._inlined.pop(id(trace), ())
            kept = self._kept.pop(id(trace), None)
            if kept is not None and self.running:
                self.captures.end(kept)
                self.unchanged = None
            if self._matched.pop(id(trace), None) is not None and self.running and trace.body:
                self._count(trace)
            for inline in inlined:
                inline.finished = True
                self._count(inline)

    def reported(self, fun: Any) -> None:
        """A function that started cold can't be in a cache: a trace of it, of which no start was heard, has been missed."""
        if not self.running or self.options.warm or fun is None:
            return
        for target in self.targets:
            if target.jitted and target.fun is fun and not target.heard:
                self.problems.append(f"JAX reports a trace of {target.name} that was not seen.")

    def names(self, fun: Any) -> bool:
        return self.running and any(fun is target.fun for target in self.targets if target.jitted)

    def judges(self, trace: Trace) -> bool:
        return id(trace) in self._matched

    def _count(self, trace: Trace) -> None:
        self.record._traces.append(trace)
        self._owners[trace.object_id] = self._owners[trace.name] = trace
        for target in self.targets:
            target.traced = target.traced or bool(target.codes.intersection(trace.codes)) or not target.codes
        self.counting.add(trace, "traced")

    def stage(
        self,
        stage: str,
        seconds: float,
        name: str,
        fun: Any,
        compiled: Trace | None,
        function: Unwrapped | None,
        stack: Stack,
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
            if stage != "compile" or not self.wants_compiles:
                return
            if compiled is None and owner is not None and fun is None:
                compiled = _compile_by_name(owner, stack)
            elif compiled is None or function is None or not self._matches(compiled, function, stack):
                return
            if compiled is not None:
                self._count_compile(compiled, stack)

    def loop_compiled(self, primitive: str, stack: Stack) -> None:
        """An eager control-flow function was compiled: it counts for that of its bodies that was traced last."""
        if not self.running or not self.wants_compiles:
            return
        bodies = [unwrap(body).codes[-1:] for body in stack.eager_bodies()[1]]
        with self.lock:
            for trace in reversed(self.record):
                if trace.codes and trace.codes[-1:] in bodies and trace.traced_for in CONTROL_FLOW[primitive]:
                    self._count_compile(_compile_by_name(trace, stack), stack)
                    return

    def _count_compile(self, compiled: Trace, stack: Stack) -> None:
        self._set_test_site(compiled, stack)
        self.record.compiles.append(compiled)
        self.counting.add(compiled, "compiled")

    def jit_switched(self, off: bool) -> None:
        if not (off and self.running):
            return
        self._off_calls.start()
        self._plain_calls.start()
        if not self.targets:
            self.disabled = ["the block"]
        for code in Stack(sys._getframe(1)).running(self._plain):
            self._note_disabled(code)

    def lost(self, error: BaseException) -> None:
        if len(self.problems) < 3:
            self.problems.append(f"a trace could not be recorded ({type(error).__name__}: {error}).")

    # -- calls

    def _off_called(self, frame: FrameType) -> bool:
        if recorder.is_quiet:
            return True
        if self.running and settings.jit_is_disabled() and listening.running_trace(frame) is None:
            self._note_disabled(frame.f_code)
            return False
        return True

    def _note_disabled(self, code: CodeType) -> None:
        for target in self.targets:
            if code in target.codes:
                target.called = True
                if target.name not in self.disabled:
                    self.disabled.append(target.name)

    def _plain_called(self, frame: FrameType) -> bool:
        if not self.running:
            return False
        if recorder.is_quiet:
            return True
        for target in self.targets:
            if frame.f_code in target.codes and not target.called:
                target.called = True
                target.may_jit = jit_in_sight(target.function, frame.f_locals.values())
        if settings.jit_is_disabled():
            self._note_disabled(frame.f_code)
        running = listening.running_trace(frame)
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
        self.judged = True
        error = self.cannot_judge() or self.error(*self.counting.first_alert())
        self.alerts.clear()
        if threading.get_ident() != self._thread:
            self.raised_elsewhere = error
        raise error

    def look_at_captures(self) -> Callable[[], bool]:
        """After a call of the wrap form: where something captured has changed, find out whether the call was stale.

        Returns a quick look for the calls that follow: whether all is as it is now.
        """
        self.raise_stale("changed")
        self.unchanged = self.captures.look()
        return self.unchanged

    def raise_stale(self, which: Which) -> None:
        """Raise for the first function that keeps a stale value.

        Args:
            which: "all" that were traced, or those of which something captured has "changed" or is "unchanged".
        """
        with self.lock, recorder.quiet():
            found = self.captures.stale(which)
        if not found:
            return
        self.judged = True
        error = StaleValueError(words.text(found[0], found[1:], self.options.info), self.record)
        site = found[0].trace.test_site
        error.line = site.line if site is not None else 0
        if threading.get_ident() != self._thread:
            self.raised_elsewhere = error
        raise error

    def error(self, verb: str, group: list[Trace]) -> RetraceError:
        options = self.options
        error = RetraceError(
            report.retraced(verb, group, self.counting.allowed(verb, group), options.per, options.info),
            self.record,
            report.everything(group, self._explaining),
        )
        return report.blame(error, group[-1])

    @property
    def _names(self) -> str:
        return " and ".join(t.name for t in self.targets) or "the block"

    def cannot_judge(self) -> RetraceError | None:
        """What is raised in place of any verdict where JAX does not tell what it needs."""
        missing = listening.missing(self.wants_compiles)
        if not missing:
            return None
        return RetraceError(report.cannot_judge(self._names, missing, self.options.info), self.record)

    def judge(self) -> None:
        """Raise or warn, once everything has been seen."""
        self.judged = True
        cannot = self.cannot_judge()
        if cannot is not None:
            raise cannot
        worst = self.counting.worst()
        if worst is not None:
            raise self.error(*worst)
        names = self._names
        if self.disabled or (self._disabled_at_start and not len(self.record)):
            raise RetraceError(report.disabled(" and ".join(self.disabled) or names, self.options.info), self.record)
        if self.problems:
            raise RetraceError(report.unjudged(names, self.problems, self.options.info), self.record)
        if self.wants_captures:
            self.raise_stale("unchanged" if self.at_each_call else "all")
            for name, reason in self.captures.not_checked.items():
                self.warn(report.captures_not_checked(name, reason))
        self.judge_silence()

    def warn(self, text: str) -> None:
        """Warn at the user's line: where the block begins, the wrap was made or the marked test stands."""
        warnings.warn_explicit(JitcacheWarning(text), None, *self.opened, registry=self._registry)

    def judge_silence(self) -> None:
        """A guard that saw nothing is not a passed test."""
        if not self.targets:
            if not len(self.record) and not self.options.warm:
                self.warn(report.NOTHING_IN_BLOCK)
            return
        for target in self.targets:
            if target.traced or (not target.jitted and len(self.record)):
                continue
            if self.options.warm and (target.called or target.jitted):
                continue  # as it should be; a warm call of a jitted function can't be seen
            if not target.called:
                self.warn(report.never_called(target.name, target.jitted))
            elif target.jitted or target.may_jit or jit_in_sight(target.function) or not listening.announces_starts():
                self.warn(report.maybe_warm(target.name))
            else:
                raise RetraceError(report.never_traced(target.name, self.options.info), self.record)


def _compile_by_name(owner: Trace, stack: Stack) -> Trace:
    frame = stack.caller()
    compiled = copy.copy(owner)
    compiled.stage = "transpose" if stack.is_transpose() else "compile"
    compiled.seconds, compiled.test_site = {}, None
    compiled.call_site = site_of(frame) if frame is not None else None
    return compiled
