"""Records what the tests of one process trace, lower and compile, and turns it into plain data, test by test.

What leaves this module is a `Payload`: JSON types only, so that it can ride on a report from an xdist worker.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from pytest_jitcache.causes import CAUSES, Difference, compare, explain
from pytest_jitcache.identity import Unwrapped, unwrap
from pytest_jitcache.jax import listening
from pytest_jitcache.jax.explanations import explanations
from pytest_jitcache.jax.stack import Stack
from pytest_jitcache.places import is_library
from pytest_jitcache.recorder import CONTROL_FLOW, Site, Trace, Watcher, recorder, site_of
from pytest_jitcache.signature import Leaf, Node, Signature, kind_name
from pytest_jitcache.suite.content import content
from pytest_jitcache.suite.rules import rule
from pytest_jitcache.varying import parts

Payload = dict[str, Any]

STAGES = ("trace", "lower", "compile")

_REMEMBERED = 4  # earlier traces of one signature that a later test is compared with
_JITTER = 1e-4  # seconds; JAX measures with another clock


class Function(NamedTuple):
    """Which function, in plain data: the same in each process. `function_from` reads it from a payload."""

    name: str
    qualname: str
    module: str
    filename: str
    line: int
    column: int
    kinds: tuple[str, ...]


def function_from(row: list[Any]) -> Function:
    name, qualname, module, filename, line, column, kinds = row
    return Function(name, qualname, module, filename, line, column, tuple(kinds))


@dataclass(eq=False)
class Record:
    """One trace in one test, and the stages that followed from it; `trace` is None where only those were seen."""

    function: Function
    phase: str
    thread: str
    start: float
    trace: Trace | None = None
    test_site: Site | None = None
    layers: tuple[Any, ...] = ()
    holds: Any = None
    looked_at: bool = False  # asked for by `.lower`, `make_jaxpr`, ...: nothing was called
    guarded: bool = False  # a guard of the same test judges it
    seconds: dict[str, float] = field(default_factory=dict)
    compiles: int = 0
    wasted: str | None = None  # "test": traced before in this test; "run": in an earlier one
    difference: Difference | None = None
    allowed: bool = False

    @property
    def only_looked_at(self) -> bool:
        """Whether the trace was asked for as such, and nothing was compiled from it."""
        return self.looked_at and not self.compiles

    def tell_trace(self) -> None:
        """Let the trace know what followed from it, and where, for a text that shows the trace."""
        assert self.trace is not None
        self.trace.seconds = {**self.seconds, **self.trace.seconds}
        self.trace.compiles = self.compiles
        self.trace.test_site = self.trace.test_site or self.test_site

    def add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self.compiles += stage == "compile"


class _Span(NamedTuple):
    start: float
    end: float
    record: Record | None
    name: str


class Group(list[Record]):
    """Traces of one function, made anew or not, for one signature."""


class Session(Watcher):
    """All that one process has seen.

    Args:
        spans: whether to keep each span for a timeline.
        explain: whether to have JAX explain what the tests themselves trace, outside their setup and teardown.
    """

    def __init__(self, spans: bool = False, explain: bool = False) -> None:
        self.nodeid = ""
        self.phase = "collection"
        self.listening = False
        self.began = time.perf_counter()
        self.clock = time.time() - self.began
        self.guarded: set[CodeType] = set()
        self.home: CodeType | None = None
        self.explained = False  # JAX was asked in the call phase that is under way or was the last
        self._keep_spans = spans
        self._explain = explain
        self._lock = threading.RLock()
        self._open: dict[int, Record] = {}
        self._earlier: dict[object, list[tuple[str, Record]]] = {}
        self._stacks: dict[int, list[_Span]] = {}
        self._covered: list[tuple[float, float]] = []  # the union of the latest spans of all threads
        self._problems: list[str] = []
        self._attempts: dict[str, int] = {}
        self._told: set[tuple[Function, str]] = set()  # signatures whose parts have been handed on
        self._start_over()

    def cannot_judge(self) -> list[str]:
        """Why nothing can be said of what was traced in the running test, one line each; empty where something can."""
        return listening.missing() if self.listening and self._measured else []

    def _start_over(self) -> None:
        self._measured = False
        self.records: list[Record] = []
        self._groups: dict[object, list[Group]] = {}
        self._latest: dict[object, Record] = {}
        self._bodies: dict[int, dict[str, Record]] = {}
        self._busy = 0.0
        self._others: dict[str, dict[str, float]] = {}
        self._other_compiles: dict[str, int] = {}
        self._spans: list[list[Any]] = []
        self._phases: list[list[Any]] = []

    # -- tests

    def listen(self) -> None:
        """Begin to record; JAX has been imported."""
        self.listening = True
        recorder.watch(self)

    def enter(self, nodeid: str, phase: str) -> None:
        """A phase of a test begins."""
        with self._lock:
            if phase == "setup" and nodeid != self.nodeid:
                self._open.clear()
            if phase == "setup":
                self._attempts[nodeid] = self._attempts.get(nodeid, 0) + 1
            self.nodeid, self.phase = nodeid, phase
            self._phases.append([phase, self.clock + time.perf_counter(), 0.0])
        self.explained = self._explain and self.listening and phase == "call"
        if self.explained:
            explanations.start()
        if self.listening and not (listening.monitoring_is_heard() and listening.trace_starts_are_heard()):
            listening.listen(recorder)

    def leave(self) -> None:
        """A phase of a test ends."""
        with self._lock:
            if self._phases:
                self._phases[-1][2] = self.clock + time.perf_counter()
        if self.explained and self.phase == "call":
            explanations.stop()
        if self.listening and not (listening.monitoring_is_heard() and listening.trace_starts_are_heard()):
            self.lost(RuntimeError("JAX's event listeners were removed in this test"))

    def flush(self, anyway: bool = False) -> Payload | None:
        """What was seen in the test that ends now, or between two tests, as plain data; None for nothing, if not `anyway`."""
        with self._lock:
            payload = self._payload(anyway)
            self._start_over()
            self._problems = []
            self.guarded = set()
            self.home = None
            self.nodeid, self.phase = "", "between tests"
        return payload

    # -- from the recorder

    def begin(self, trace: Trace, function: Unwrapped, stack: Stack) -> None:
        record = Record(
            function_of(function), self.phase, trace.thread, time.perf_counter(), trace, layers=trace.layers,
            looked_at=stack.only_inspected(),
        )  # fmt: skip
        if trace.body and trace.around is None:
            record.holds = _holds(function, trace)
        above = stack.frame_of(self.home)
        record.test_site = site_of(above) if above is not None else None
        self._open[id(trace)] = record

    def end(self, trace: Trace) -> None:
        with self._lock:
            record = self._open.pop(id(trace), None)
            if record is None:
                return
            seconds = trace.seconds.get("trace", 0.0)
            now = time.perf_counter()
            self._spent(_Span(now - seconds, now, record, trace.name), "trace")
            if not trace.body:
                return
            self._append(record)
            record.guarded = any(other.judges(trace) for other in recorder.watchers())
            if trace.around is None:
                self._compare(record)

    def joined(self, other: Watcher) -> None:
        for target in getattr(other, "targets", ()):
            self.guarded.update(target.codes)

    def spent(self, stage: str, seconds: float, name: str, fun: Any, helper: bool) -> None:
        name = name or str(getattr(fun, "__name__", ""))  # events of JAX 0.4.35 carry no name
        with self._lock:
            self._measured = True
            now = time.perf_counter()
            record = None if helper or stage == "trace" else self._owner(stage, name, fun)
            self._spent(_Span(now - seconds, now, record, name), stage)

    def lost(self, error: BaseException) -> None:
        if len(self._problems) < 3:
            self._problems.append(f"{type(error).__name__}: {error}"[:300])

    # -- inside

    def _owner(self, stage: str, name: str, fun: Any) -> Record | None:
        """The record of the function that is lowered or compiled: its last trace in this test, or a new record."""
        thread = threading.get_ident()  # several threads may have one name
        if fun is None:
            return self._latest.get((thread, name))
        function = unwrap(fun)
        record = self._latest.get((thread, function.layers))
        if record is None and not function.found:
            bodies = self._bodies.get(thread, {})
            traced_for = next((one for one in CONTROL_FLOW.get(name, ()) if one in bodies), None)
            if traced_for is None:
                return None
            return bodies.pop(traced_for) if stage == "compile" else bodies[traced_for]
        if record is None:
            name = threading.current_thread().name
            record = Record(function_of(function), self.phase, name, time.perf_counter(), layers=function.layers)
            self._append(record)
        return record

    def _append(self, record: Record) -> None:
        thread = threading.get_ident()
        self.records.append(record)
        wrappers = record.trace.wrappers() if record.trace is not None else ()
        for which in (record.layers, record.function.name, *(wrapper.layers for wrapper in wrappers)):
            self._latest[thread, which] = record
        if record.trace is not None and record.trace.around is None:
            self._bodies.setdefault(thread, {})[record.trace.traced_for] = record

    def _spent(self, span: _Span, stage: str) -> None:
        """Charge a span with its own time: its length without that of the spans in it, which have ended before."""
        ident = threading.get_ident()
        stack = self._stacks.setdefault(ident, [])
        self._cover(span.start, span.end)
        inner = 0.0
        twin: _Span | None = None
        while stack and stack[-1].start >= span.start - _JITTER:
            last = stack.pop()
            inner += last.end - last.start
            if stage == "trace" and span.record is None and last.record is not None and span.name in (last.name, ""):
                twin = last
        del stack[:-64]
        stack.append(span)
        own = max(0.0, span.end - span.start - inner)
        record = span.record if twin is None else twin.record
        if record is not None:
            record.add(stage, own)
        else:
            name = span.name or "unnamed"
            self._others.setdefault(name, dict.fromkeys(STAGES, 0.0))[stage] += own
            if stage == "compile":
                self._other_compiles[name] = self._other_compiles.get(name, 0) + 1
        if self._keep_spans and twin is None:
            shown = record.function.name if record is not None else span.name
            thread = threading.current_thread().name
            signature = str(record.trace.signature) if record is not None and record.trace is not None else ""
            self._spans.append(
                [
                    stage,
                    shown,
                    self.clock + span.start,
                    span.end - span.start,
                    ident,
                    thread,
                    signature,
                    self.phase,
                    record,
                ]
            )

    def _cover(self, start: float, end: float) -> None:
        """Count the seconds of a span in which no other thread was at work. Spans come in the order of their ends."""
        covered = self._covered
        known = 0.0
        while covered and covered[-1][1] >= start:
            first, last = covered.pop()
            known += last - first
            start, end = min(start, first), max(end, last)
        self._busy += end - start - known
        covered.append((start, end))
        del covered[:-64]

    def _compare(self, record: Record) -> None:
        """Whether this was traced before: in this test, or by an earlier one."""
        trace = record.trace
        assert trace is not None
        keys = {trace.signature.key, trace.signature.default_key}
        for key in keys:
            groups = self._groups.setdefault((trace.cache, key), [])
            group = next((g for g in groups if same(g[-1], record)), None)
            if group is None:
                groups.append(Group([record]))
                continue
            if record.wasted is None:
                record.wasted = "test"
                record.difference = _nearest(group, trace)
            group.append(record)
        earlier = self._earlier.setdefault((trace.layers, trace.traced_for, trace.signature.key), [])
        if record.wasted is None:
            for nodeid, other in reversed(earlier):
                if nodeid != self.nodeid and other.trace is not None and same(other, record):
                    alive = other.trace.ref()
                    if alive is not None and alive is not trace.ref():
                        continue
                    found = compare(other.trace, trace)
                    if all(CAUSES[d.cause].made_anew for d in found):
                        record.wasted, record.difference = "run", found[0]
                        break
        earlier.append((self.nodeid, record))
        del earlier[:-_REMEMBERED]

    def repeated(self) -> list[Group]:
        """The groups of this test's call phase with more than one trace, the largest first. Nothing that a guard judges."""
        with self._lock:
            found: dict[int, Group] = {}
            for groups in self._groups.values():
                for group in groups:
                    called = Group(r for r in group if r.phase == "call" and not self._exempt(r))
                    if len(called) > 1:
                        found.setdefault(id(called[-1]), called)
            return sorted(found.values(), key=len, reverse=True)

    def signatures(self) -> dict[Function, list[Trace]]:
        """The functions of this test's call phase, each with one trace for each of its signatures."""
        with self._lock:
            found: dict[Function, dict[object, Trace]] = {}
            for record in self.records:
                trace = record.trace
                if trace is not None and record.phase == "call" and not self._exempt(record) and trace.around is None:
                    found.setdefault(record.function, {}).setdefault(trace.signature.key, trace)
            return {function: [*traces.values()] for function, traces in found.items()}

    def _exempt(self, record: Record) -> bool:
        trace = record.trace
        if trace is None or record.guarded or self.guarded.intersection(trace.codes):
            return True
        return record.only_looked_at

    # -- plain data

    def _payload(self, anyway: bool) -> Payload | None:
        functions: dict[Function, int] = {}
        records = []
        for record in self.records:
            trace = record.trace
            row: Payload = {
                "function": functions.setdefault(record.function, len(functions)),
                "phase": record.phase,
                "thread": record.thread,
                "start": self.clock + record.start,
                "seconds": {stage: record.seconds.get(stage, 0.0) for stage in STAGES},
                "compiles": record.compiles,
                "traced": trace is not None,
            }
            difference = record.difference if not record.only_looked_at else None
            if trace is not None:
                text = plain(trace.signature)
                row.update(
                    signature=trace.signature.render(limit=300),
                    key=hashlib.sha1(text.encode()).hexdigest()[:16],
                    traced_for=trace.traced_for,
                    inside=trace.inside.name if trace.inside is not None else None,
                    call_site=_site(trace.call_site),
                    test_site=_site(record.test_site),
                    wasted=record.wasted if difference is not None else None,
                    cause=difference.title if difference is not None else None,
                    rule=rule(trace, difference) if difference is not None else None,
                    fix=explain(difference, trace, trace)[1] if difference is not None else None,
                    allowed=record.allowed,
                )
                if (record.function, row["key"]) not in self._told:
                    self._told.add((record.function, row["key"]))
                    row["parts"] = parts(trace.signature)
            records.append(row)
        if not (anyway or self.nodeid or records or self._others or self._problems):
            return None
        return {
            "test": self.nodeid,
            "attempt": self._attempts.get(self.nodeid, 0),
            "functions": [[*function[:-1], list(function.kinds)] for function in functions],
            "records": records,
            "others": {
                name: [*seconds.values(), self._other_compiles.get(name, 0)] for name, seconds in self._others.items()
            },
            "problems": list(self._problems),
            "busy": self._busy,
            "spans": [[*span, record is not None and record.wasted is not None] for *span, record in self._spans],
            "phases": self._phases,
        }


def function_of(function: Unwrapped) -> Function:
    written = [o for o in function.objects if isinstance(o, FunctionType)]
    module = str(getattr(written[-1], "__module__", "") or "") if written else ""
    code = function.codes[-1] if function.codes else None
    kinds = tuple(kind.lstrip("_") for kind in function.kinds if kind != "jit")
    return Function(
        function.name, function.qualname, module, function.filename, function.line, _column(code), kinds,
    )  # fmt: skip


def _column(code: CodeType | None) -> int:
    """Where on its line a function begins, so that two lambdas of one line are two; 0 where Python does not say."""
    if code is None or not hasattr(code, "co_positions"):
        return 0
    columns = (position[2] for position in code.co_positions() if position[0] == code.co_firstlineno)
    return next((column for column in columns if column), 0)


def _holds(function: Unwrapped, trace: Trace) -> Any:
    """What the function captures, and what its static arguments hold that compare by identity."""
    from pytest_jitcache.recorder import _identity_tokens

    statics = []
    for argument in trace.signature.arguments:
        for token in _identity_tokens(argument):
            value = token.ref()
            if value is not None:
                statics.append(content(value))
    return (content(function.objects[0]) if function.objects else None, statics)


def same(earlier: Record, later: Record) -> bool:
    """Whether a later trace is of the same function, and of the same static arguments, as an earlier one."""
    a, b = earlier.trace, later.trace
    if a is None or b is None or earlier.holds is None or later.holds is None:
        return False
    alike = a.ref() is not None and a.ref() is b.ref()
    return (alike or bool(earlier.holds[0] == later.holds[0])) and bool(earlier.holds[1] == later.holds[1])


def _nearest(group: Group, trace: Trace) -> Difference:
    found = [compare(r.trace, trace) for r in group[-8:] if r.trace is not None]
    return min(found, key=len)[0]


def own_code(function: Function) -> bool:
    """Whether the user wrote it: not JAX, not an installed library, not the standard library."""
    return bool(function.line) and not is_library(function.filename)


def _site(site: Any) -> list[Any] | None:
    return [site.filename, site.line, site.function] if site is not None else None


def plain(signature: Signature) -> str:
    """The signature as text that is the same in each process, without what is no part of its key (weak types)."""
    parts = (f"{a.name}={''.join(_plain(a.tree))}" for a in signature.arguments if a.passed != "omitted")
    return "; ".join(parts)


def _plain(tree: Node | Leaf) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield re.sub(r"0x[0-9a-f]+", "0x", tree.text) if tree.form == "static" else f"{tree.dtype}{list(tree.shape)}"
        return
    yield kind_name(tree.type) + "("
    for entry, child in zip(tree.entries, tree.children, strict=False):
        yield entry
        yield from _plain(child)
    yield ")"
