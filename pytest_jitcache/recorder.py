"""Turns what JAX tells into records, for everybody who watches: a guard, or a whole test session.

One `Recorder` a process. It builds each `Trace` once and hands it to all watchers; it needs no function to be named.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from pytest_jitcache.identity import Slots, Unwrapped, unwrap
from pytest_jitcache.jax import caches, listening, settings
from pytest_jitcache.jax.explanations import explanations
from pytest_jitcache.jax.stack import Call, Stack, Start
from pytest_jitcache.places import Body, Whose, in_jax, qualname, show, whose
from pytest_jitcache.signature import Argument, Capture, Node, Signature, identities, leaves_of, reference

if TYPE_CHECKING:
    from pytest_jitcache.captures.snapshot import Snapshot
    from pytest_jitcache.jax import programs

# What an eager control-flow function is compiled as -> what its bodies are traced for.
CONTROL_FLOW = {
    "scan": ("scan", "fori_loop"),
    "while": ("while_body", "fori_loop", "while_cond"),
    "cond": ("cond", "switch"),
}


@dataclass(frozen=True, slots=True)
class Site:
    """A line of source: `filename`, `line` and the qualified name of the `function` that it is in."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{show(self.filename)}:{self.line}"


@dataclass(eq=False)
class Trace:
    """One trace: one run of a function's body with tracers. Keeps no array, no tracer and no frame alive.

    Attributes:
        name: the function's `__name__`.
        qualname: its qualified name.
        filename: of the file that defines it.
        line: of its definition; 0 where it is not known.
        traced_for: "jit", or what else asked for it: "scan", "cond", "while_body", "checkpoint / remat", ...
        kinds: what the traced callable is, from the outside in: ("grad", "function"), ("partial", "lambda"), ...
        signature: the abstract arguments, bound to parameters.
        call_site: the first line of the user's own code above the trace, or None.
        test_site: the line of the function that holds the guard, if it is another one.
        seconds: seconds spent on this trace: "trace", and "lower" and "compile" as far as they belong to it.
        compiles: how many XLA compiles followed from it.
        thread: name of the thread.
        inside: the trace in which this one happened, if it was inlined there.
        cause: why this was traced again, once a guard has found out.
        words: what JAX itself says of the cache miss (`jax_explain_cache_misses`), where a guard has asked for it.
        stage: "trace"; in `TraceRecord.compiles` "compile", or "transpose" for the compile of a backward pass.
        finished: whether it ended without an exception.
        number: of the trace in this process, in the order in which traces began.
        settings: JAX's settings that are part of the key of its trace cache, and their values.
        options: what else was given to `jax.jit`, and its values.

    What tells functions apart, for those who compare traces:

    Attributes:
        layers: the code and the bound values of each layer of the traced callable: equal for what one place makes.
        slot: which of the living functions of these layers it is; that of a dead one goes to the next.
        codes: the code of each layer that has one, from the outside in.
        epoch: another object after `jax.clear_caches()`.
        ref: gives the function under the jit, or None once it is gone.
        object_id: its `id`.
        wrapper: gives what JAX's cache goes by, if it is another object.
        body: whether the user's own code ran in it directly, and not in a trace inside it.
        filtered: whether what is no array was static, as in `eqx.filter_jit`.
        call: what it can be traced again with, where a guard checks captures; weak references and abstract values only.
        captured: what the function captured when it was traced, where it may be made anew; digests, no arrays.
        inline_of: the code of a plain function that ran inside another trace, whose record this is.
    """

    name: str
    qualname: str
    filename: str
    line: int
    traced_for: str
    kinds: tuple[str, ...]
    signature: Signature
    call_site: Site | None
    thread: str
    inside: Trace | None = None
    test_site: Site | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    compiles: int = 0
    cause: str | None = None
    words: str = ""
    stage: str = "trace"
    finished: bool = False
    number: int = 0
    layers: tuple[Any, ...] = field(default=(), repr=False)
    slot: int = 0
    codes: tuple[CodeType, ...] = field(default=(), repr=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    epoch: object = field(default=None, repr=False)
    ref: Callable[[], Any] = field(default=lambda: None, repr=False)
    object_id: int = 0
    wrapper: Callable[[], Any] = field(default=lambda: None, repr=False)
    body: bool = True
    filtered: bool = False
    inline_of: CodeType | None = None
    captured: Snapshot | None = field(default=None, repr=False)  # by a function that may be made anew, at its start
    call: programs.Call | None = field(default=None, repr=False)  # to look its program up, where a watcher wants to

    @property
    def place(self) -> str:
        return f"{show(self.filename)}:{self.line}" if self.line else "an unknown place"

    @property
    def cache(self) -> tuple[object, ...]:
        """Which of JAX's caches it is in: one of a function, made anew or not, for one purpose."""
        return (self.layers, self.slot, self.traced_for, self.filtered)

    def wrappers(self) -> Iterator[Trace]:
        """The traces of the wrappers (a checkpoint, a pmap) whose body this is, from the inside out."""
        outer = self.inside
        while outer is not None and not outer.body:
            yield outer
            outer = outer.inside

    @property
    def around(self) -> Trace | None:
        """The trace that this is part of, if any: not that of a wrapper whose body it is."""
        return [self, *self.wrappers()][-1].inside

    def __str__(self) -> str:
        return f"{self.name}({self.signature})"


class Watcher:
    """What a guard or a session implements. No method may be slow, none may raise."""

    wants_compiles = False
    wants_captures = False

    def begin(self, trace: Trace, function: Unwrapped, stack: Stack) -> None: ...

    def end(self, trace: Trace) -> None: ...

    def stage(
        self,
        stage: str,
        seconds: float,
        name: str,
        fun: Any,
        compiled: Trace | None,
        function: Unwrapped | None,
        stack: Stack,
    ) -> None: ...

    def loop_compiled(self, primitive: str, stack: Stack) -> None: ...

    def spent(self, stage: str, seconds: float, name: str, fun: Any, helper: bool) -> None: ...

    def reported(self, fun: Any) -> None:
        """JAX has measured a trace of a function: whoever has heard of no start of it has missed one, or it was cached."""

    def joined(self, other: Watcher) -> None: ...

    def names(self, fun: Any) -> bool:
        """Whether the user has named this function, so that it counts even if it is one of JAX's own."""
        return False

    def judges(self, trace: Trace) -> bool:
        """Whether a trace that has just ended counts for a verdict of its own."""
        return False

    def jit_switched(self, off: bool) -> None: ...

    def lost(self, error: BaseException) -> None: ...


class Recorder:
    """Receives from `jax.listening`, sends to watchers."""

    def __init__(self) -> None:
        self._watchers: tuple[weakref.ref[Watcher], ...] = ()
        self._lock = threading.RLock()
        self._slots = Slots()
        self._statics = Slots()
        self._capture: Capture | None = None
        self._count = itertools.count(1)
        self._checkpointed: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
        self._words = threading.local()
        self._quiet = threading.local()

    # -- watchers

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of everything from now on, for as long as somebody else keeps it alive."""
        with self._lock:
            if self._capture is None:
                self._capture = Capture()
            self._watchers = (*(r for r in self._watchers if r() is not None), weakref.ref(watcher))
        for other in self.watchers():
            if other is not watcher:
                other.joined(watcher)
        listening.listen(self)

    def unwatch(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers = tuple(r for r in self._watchers if r() is not None and r() is not watcher)

    def watchers(self) -> Iterator[Watcher]:
        for ref in self._watchers:
            watcher = ref()
            if watcher is not None:
                yield watcher

    # -- from JAX

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """What is traced in here, on this thread, is nobody's trace."""
        before, self._quiet.on = self.is_quiet, True
        try:
            yield
        finally:
            self._quiet.on = before

    @property
    def is_quiet(self) -> bool:
        return bool(getattr(self._quiet, "on", False))

    def cares(self, fun: Any) -> bool:
        return bool(self._watchers) and not self.is_quiet and (not self._is_helper(fun) or self._is_named(fun))

    def _is_named(self, fun: Any) -> bool:
        return any(watcher.names(fun) for watcher in self.watchers())

    def trace_started(self, start: Start) -> object:
        fun = start.call.fun if start.call is not None and start.call.arrays_only else start.fun
        function = unwrap(fun)
        if not function.found and fun is start.fun:
            code = getattr(start.fun, "__code__", None)
            if code is None or in_jax(code.co_filename):
                if not (self._is_named(fun) or _is_made_by_user(function, start.stack)):
                    return None
                function = replace(function, found=True, has_cache=False)
        if _is_librarys(start.fun) and start.stack.only_inspected():
            return None  # flax looks at shapes with functions of its own, which hold the user's module
        trace = self._build(fun, function, start.call, start.avals, start.stack, start.traced_for, start.flat)
        if start.made is not None and any(w.wants_captures for w in self.watchers()):
            trace.call = _program_call(start.made)
        again = start.traced_for != "jit" and start.stack.traced_in_same_call((trace.layers, trace.slot))
        trace.body = not again and not function.has_cache
        if "checkpoint" in function.kinds and not listening.announces_checkpoints():
            trace.body = self._is_first(function, trace) and not again
        if (
            trace.inside is not None
            and trace.inside.body
            and function.codes
            and trace.inside.codes[-1:] == function.codes[-1:]
        ):
            inner_is_recursion = not trace.inside.kinds or trace.inside.kinds[0] in (
                "function",
                "lambda",
                "nested function",
            )
            if not inner_is_recursion and trace.inside.ref() is not None:
                trace.inside.body = self._is_user_code(trace.inside)
        if explanations.asked:
            fun_id, words = getattr(self._words, "ahead", (0, ""))
            if fun_id == id(start.fun):
                trace.words, self._words.ahead = words, (0, "")
        for watcher in self.watchers():
            watcher.begin(trace, function, start.stack)
        return trace

    def _is_first(self, function: Unwrapped, trace: Trace) -> bool:
        """Whether a checkpointed function runs in this trace: where JAX does not announce it, the first time only."""
        known = self._checkpointed.setdefault(function.objects[-1], set())
        key = (trace.signature.key, trace.epoch)
        first = key not in known
        known.add(key)
        return first

    def forget(self, codes: frozenset[CodeType]) -> None:
        """The caches of these functions have been cleared."""
        for function in [f for f in self._checkpointed if getattr(f, "__code__", None) in codes]:
            del self._checkpointed[function]

    @staticmethod
    def _is_user_code(trace: Trace) -> bool:
        first = next((layer for layer in trace.layers if isinstance(layer, Body)), None)
        return first is not None and first.code in trace.codes

    def _is_helper(self, fun: Any) -> bool:
        """Quickly: a function of JAX's own that holds no other."""
        code = getattr(fun, "__code__", None)
        if code is None or not in_jax(code.co_filename):
            return False
        return not getattr(fun, "__closure__", None) and not hasattr(fun, "__wrapped__")

    def trace_ended(self, token: Any, seconds: float, succeeded: bool) -> None:
        trace: Trace = token
        trace.seconds["trace"] = seconds
        if not succeeded:
            return
        trace.finished = True
        _note_advanced(trace)
        if explanations.asked:
            self._words.over = trace
        for watcher in self.watchers():
            watcher.end(trace)

    def explained(self, fun: Any, text: str) -> None:
        """JAX's words about a miss: JAX 0.8 and earlier says them when the trace is over, later ones before it starts."""
        if listening.announces_bodies():
            self._words.ahead = (id(fun), text)
            return
        over: Trace | None = getattr(self._words, "over", None)
        if over is not None and not over.words and over.wrapper() is fun:
            over.words = text

    def stage_ended(self, stage: str, seconds: float, fun_name: str, call: Call | None, stack: Stack) -> None:
        if self.is_quiet:
            return
        helper = call is not None and self._is_helper(call.fun)
        for watcher in self.watchers():
            watcher.spent(stage, seconds, fun_name, call.fun if call is not None else None, helper)
        if helper:
            return
        compiled: Trace | None = None
        function: Unwrapped | None = None
        if stage == "compile" and call is not None and any(w.wants_compiles for w in self.watchers()):
            function = unwrap(call.fun)
            if function.found:
                compiled = self._build(call.fun, function, call, None, stack, "jit")
                compiled.stage = "compile"
                compiled.finished = True
                compiled.seconds["compile"] = seconds
            elif fun_name in CONTROL_FLOW:
                for watcher in self.watchers():
                    watcher.loop_compiled(fun_name, stack)
        for watcher in self.watchers():
            watcher.stage(stage, seconds, fun_name, call.fun if call is not None else None, compiled, function, stack)

    def trace_measured(self, seconds: float, fun_name: str, fun: Any) -> None:
        if self.is_quiet:
            return
        for watcher in self.watchers():
            watcher.reported(fun)
            watcher.spent("trace", seconds, fun_name, None, False)

    def jit_switched(self, off: bool) -> None:
        for watcher in self.watchers():
            watcher.jit_switched(off)

    def failed(self, error: BaseException) -> None:
        for watcher in self.watchers():
            watcher.lost(error)

    def inlined(self, frame: FrameType, outer: Trace) -> Trace:
        """A record for a plain function whose body has just started inside the trace `outer`."""
        assert self._capture is not None
        code = frame.f_code
        local = frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        capture = self._capture
        arguments = tuple(Argument(n, capture.tree(local[n], True), "position") for n in names if n in local)
        site = Stack(frame).call_site()
        return Trace(
            name=code.co_name,
            qualname=qualname(code),
            filename=code.co_filename,
            line=code.co_firstlineno,
            traced_for="inlined",
            kinds=("function",),
            signature=Signature(arguments),
            call_site=site_of(site) if site is not None else None,
            test_site=outer.test_site,
            thread=threading.current_thread().name,
            inside=outer,
            number=next(self._count),
            layers=(Body.of(code),),
            codes=(code,),
            settings=outer.settings,
            epoch=outer.epoch,
            inline_of=code,
        )

    # -- building

    def _build(
        self,
        fun: Any,
        function: Unwrapped,
        call: Call | None,
        avals: tuple[tuple[Any, ...], dict[str, Any]] | None,
        stack: Stack,
        traced_for: str,
        flat: bool = False,
    ) -> Trace:
        identity = fun
        filtered = call is not None and call.arrays_only
        static = filtered  # eqx.filter_jit: the function is one of JAX's static arguments
        static = static or (traced_for != "jit" and function.machinery)  # the wrapper is of JAX's making, and is cached
        if static:
            identity = function.innermost or fun
        signature = self._signature(fun, call, avals, flat)
        for argument in signature.arguments:
            for token in _identity_tokens(argument):
                value = token.ref()
                if value is not None:
                    token.slot = self._statics.slot((token.type, token.place), value, cached=True)
                    token.captured = _held_by(value, argument.name)
        site = stack.call_site()
        inside = listening.running_trace(stack)
        return Trace(
            name=function.name,
            qualname=function.qualname,
            filename=function.filename,
            line=function.line,
            traced_for=traced_for,
            kinds=function.kinds,
            signature=signature,
            call_site=site_of(site) if site is not None else None,
            thread=threading.current_thread().name,
            inside=inside if isinstance(inside, Trace) else None,
            number=next(self._count),
            layers=function.layers,
            slot=(self._statics if static else self._slots).slot(function.layers, identity, cached=static),
            codes=function.codes,
            settings=settings.settings(),
            options=call.options if call is not None else (),
            epoch=caches.cache_epoch(),
            ref=reference(identity),
            object_id=id(identity),
            filtered=filtered,
            # for a primitive JAX wraps the body anew each time, out of our sight
            wrapper=(lambda: None) if flat else reference(identity if filtered else fun),
            captured=_captured(function),
        )

    def _signature(
        self,
        fun: Any,
        call: Call | None,
        avals: tuple[tuple[Any, ...], dict[str, Any]] | None,
        flat: bool,
    ) -> Signature:
        assert self._capture is not None
        if call is not None:
            parameters = call.signature or _parameters(fun)
            return self._capture.call(
                parameters, call.args, call.kwargs, call.static_argnums, call.static_argnames, call.arrays_only
            )
        if avals is not None:
            return self._capture.call(None if flat else _parameters(fun), avals[0], avals[1])
        return Signature((), known=False)


def _program_call(made: Call) -> programs.Call | None:
    """The call, to look its program up later."""
    from pytest_jitcache.jax import programs

    return programs.call_of(made.fun, made.args, made.kwargs, made.static_argnums, made.static_argnames)


def _captured(function: Unwrapped) -> Snapshot | None:
    """What a function captures that may be made anew; None for one of a module, and where it can't be read."""
    from pytest_jitcache.captures.snapshot import snapshot

    if {*function.kinds} <= {"jit", "function"} or not function.found:
        return None
    try:
        return snapshot(function.objects)
    except Exception:  # a property of the user's that raises
        return None


def _held_by(value: Any, name: str) -> Snapshot | None:
    from pytest_jitcache.captures.snapshot import held_by

    try:
        return None if isinstance(value, type) else held_by(value, name)
    except Exception:
        return None


def _note_advanced(trace: Trace) -> None:
    """A value that the body itself has changed, such as a count of its traces, tells nothing of two functions."""
    fun = trace.ref()
    if trace.captured is not None and fun is not None:
        from pytest_jitcache.captures.snapshot import changes

        after = _captured(unwrap(fun))
        if after is not None:
            trace.captured.advanced = frozenset(change.path for change in changes(trace.captured, after))


_MADE_ANEW = ("partial", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev")


def _is_made_by_user(function: Unwrapped, stack: Stack) -> bool:
    """Whether the user has jitted something new around a function of JAX's or a built-in one, and called it."""
    return function.kinds[:1] != () and function.kinds[0] in _MADE_ANEW and stack.called_by_user()


def _is_librarys(fun: Any) -> bool:
    """Whether a function belongs to a library around JAX."""
    code = getattr(fun, "__code__", None)
    return code is not None and whose(code.co_filename) is Whose.WRAPPER


def site_of(frame: FrameType) -> Site:
    return Site(frame.f_code.co_filename, frame.f_lineno, qualname(frame.f_code))


def _parameters(fun: Any) -> Any:
    import inspect

    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def _identity_tokens(argument: Argument) -> Iterator[Any]:
    for _, leaf in leaves_of(argument.tree):
        if leaf.form == "static":
            yield from identities(leaf.token)
    yield from _meta_tokens(argument.tree)


def _meta_tokens(tree: Any) -> Iterator[Any]:
    if isinstance(tree, Node):
        yield from identities(tree.type)
        if tree.meta is not None:
            yield from identities(tree.meta)
        for child in tree.children:
            yield from _meta_tokens(child)


recorder = Recorder()

__all__ = ["CONTROL_FLOW", "Recorder", "Site", "Trace", "Watcher", "recorder", "site_of"]
