"""`traced_once`: the wrap form and the block form."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from pytest_jitcache import report
from pytest_jitcache.errors import GuardError
from pytest_jitcache.guard.options import Options, Per
from pytest_jitcache.guard.record import TraceRecord
from pytest_jitcache.guard.watch import Guard
from pytest_jitcache.jax import listening, twins
from pytest_jitcache.places import OURS

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only


P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_jitcache.guard.options import Keywords

    class Partial(functools.partial[R], Generic[P, R]):
        """A partial that binds nothing, and so is called as its function is."""

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

else:
    Partial = functools.partial


class traced_once(Partial[P, R]):
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
        max_traces: how many traces are allowed. 0: nothing may be traced while it watches; functions named then stay warm.
        per: "signature" counts each signature apart, "total" counts all signatures of a function together, "definition"
            counts all functions together that one place in the source makes, each signature apart: what is made anew on
            each call and kept is traced each time, too.
        max_compiles: how many XLA compiles are allowed, counted by the same `per`. None: any number. 0: as for max_traces.
        info: text to show in the failure.
        check_captures: whether to look, too, if a warm call keeps a stale value: something that the function captured
            when it was traced, such as a global, and that is another value now. The body is traced again for that, so
            what it prints is printed once more; no guard counts it.

    Raises:
        RetraceError: (an AssertionError) a function was traced or compiled too often, or could not be judged.
        StaleValueError: (an AssertionError) a function keeps a stale value.
        TypeError, ValueError: an argument is wrong.
    """

    __module__ = "pytest_jitcache"

    # A class, so that `with` shows no foreign frame; a partial, so that a call of it runs no Python of ours.

    _guard: Guard
    _functions: tuple[Any, ...]
    _options: Options
    _block: bool

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: Callable[P, R], /, **options: Unpack[Keywords]) -> traced_once[P, R]: ...
        @overload
        def __new__(cls, /, *functions: Callable[..., Any], **options: Unpack[Keywords]) -> traced_once[..., Any]: ...

    def __new__(
        cls,
        *functions: Callable[..., Any],
        max_traces: int = 1,
        per: Per = "signature",
        max_compiles: int | None = None,
        info: str | None = None,
        check_captures: bool = False,
    ) -> traced_once[Any, Any]:
        options = Options(max_traces, per, max_compiles, info, check_captures)
        guard = Guard(functions, options)
        guard.open(_users_frame())

        def become(judged: Callable[..., Any]) -> None:
            one = wrap()
            if one is not None:
                functools.partial.__setstate__(one, (judged, (), {}, one.__dict__))  # type: ignore[attr-defined]

        self = super().__new__(cls, _wrapped(guard, functions, become))
        wrap = weakref.ref(self)
        self._guard = guard
        self._functions = functions
        self._options = options
        self._block = False
        if len(functions) == 1:
            functools.update_wrapper(self, functions[0], updated=())
        for holder in holders:
            holder.keep(self)
        return self

    def __enter__(self) -> TraceRecord:
        if self._guard.running or self._guard.judged:
            self._guard = Guard(self._functions, self._options)  # a block of its own
        self._block = True
        for holder in holders:
            holder.let_go(self)
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
                guard.warn(report.never_called(target.name, target.jitted))
            return
        guard.stop()
        elsewhere = guard.raised_elsewhere
        if elsewhere is not None and _was_lost(elsewhere):
            guard.raised_elsewhere = None
            raise elsewhere
        if not guard.judged:
            guard.judge()


def _users_frame() -> FrameType | None:
    """The innermost frame that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame


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
                guard.at_each_call = True
                guard.start(_users_frame())
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
    if guard.wants_captures:
        return _judged_captures(guard, function)
    twin: Callable[..., Any] | None = twins.twin(function, look)
    if twin is not None:
        return twin

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs) if kwargs else function(*args)
        listening.settle()
        if alerts:
            guard.raise_alert()
        return result

    return call


def _judged_captures(guard: Guard, function: Any) -> Callable[..., Any]:
    """A callable that calls `function`, and then looks whether that call may have used a stale value."""
    unchanged: Callable[[], bool] = _unknown

    def after_miss() -> None:
        nonlocal unchanged
        unchanged = _unknown
        if guard.alerts:
            guard.raise_alert()

    twin: Any = twins.twin(function, after_miss)

    def call_twin(*args: Any, **kwargs: Any) -> Any:
        nonlocal unchanged
        result = twin(*args, **kwargs)
        if not unchanged():
            unchanged = guard.look_at_captures()
        return result

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        listening.settle()
        if guard.alerts:
            guard.raise_alert()
        if guard.unchanged is None or not guard.unchanged():
            guard.look_at_captures()
        return result

    return call if twin is None else call_twin


def _unknown() -> bool:
    return False


def _wrapped_coroutine(guard: Guard, function: Any) -> Callable[..., Any]:
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        result = await function(*args, **kwargs)
        listening.settle()
        if guard.alerts:
            guard.raise_alert()
        return result

    return awaited


def _wrapped_generator(guard: Guard, function: Any) -> Callable[..., Any]:
    def generated(*args: Any, **kwargs: Any) -> Any:
        result = yield from function(*args, **kwargs)
        listening.settle()
        if guard.alerts:
            guard.raise_alert()
        return result

    return generated


def _was_lost(error: GuardError) -> bool:
    """Whether an exception raised on a worker thread has never come to another one."""
    traceback = error.__traceback__
    if traceback is None:
        return True
    outermost = traceback.tb_frame.f_code.co_filename.replace("\\", "/")
    return outermost.endswith(("/threading.py", "/concurrent/futures/thread.py"))


traced_once.__new__.__qualname__ = "assert_traced_once"  # the name that Python's own errors about arguments give


class Holder(Protocol):
    """Who keeps wraps until they can be judged: a test. A block judges itself, and must keep no function alive."""

    def keep(self, one: traced_once[..., Any]) -> None: ...

    def let_go(self, one: traced_once[..., Any]) -> None: ...


holders: list[Holder] = []
