"""Whether this JAX tells what a verdict needs: one tiny function of our own is traced, and what was heard of it is checked.

It is traced by `jax.jit(f).trace(...)` for an abstract argument, so no backend starts. About 1 ms, once a process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_jitcache.jax import names, settings

if TYPE_CHECKING:
    from pytest_jitcache.jax.stack import Call, Stack, Start

__tracebackhide__ = True


class Ear:
    """Hears what is told of one function."""

    def __init__(self, fun: Any, jitted: Any) -> None:
        self.fun = fun
        self.jitted = jitted
        self.started = self.arguments = self.ended = self.measured = False

    def cares(self, fun: Any) -> bool:
        return fun is self.fun

    def trace_started(self, start: Start) -> object:
        self.started = True
        self.arguments = start.call is not None and _is_right(start.call)
        return self

    def trace_ended(self, token: Any, seconds: float, succeeded: bool) -> None:
        self.ended = succeeded

    def stage_ended(self, stage: str, seconds: float, fun_name: str, call: Call | None, stack: Stack) -> None: ...

    def trace_measured(self, seconds: float, fun_name: str, fun: Any) -> None:
        self.measured = True

    def jit_switched(self, off: bool) -> None: ...

    def explained(self, fun: Any, text: str) -> None: ...

    def failed(self, error: BaseException) -> None: ...


_STATIC = 3


def _is_right(call: Call) -> bool:
    return (
        len(call.args) == 2
        and call.args[1] == _STATIC
        and dict(call.kwargs) == {"name": "static"}
        and tuple(call.static_argnums) == (1,)
        and tuple(call.static_argnames) == ("name",)
    )


@contextlib.contextmanager
def _dropped(jitted: Any) -> Iterator[None]:
    try:
        yield
    finally:
        names.CLEAR.of(jitted, _nothing)()


def _nothing() -> None: ...


def made() -> tuple[Ear, Any]:
    """An ear, and what has to be called while it listens.

    Raises, when that is called:
        Exception: nothing can be traced at the moment (the setting jax_no_tracing).
    """
    import jax
    import numpy as np

    def probed(x: Any, number: int, *, name: str) -> Any:
        return x

    scalar: Any = jax.ShapeDtypeStruct((), np.dtype("float32"))  # type: ignore[no-untyped-call]
    jitted: Any = jax.jit(probed, static_argnums=1, static_argnames="name")

    def trace() -> None:
        with _dropped(jitted):
            jitted.trace(scalar, _STATIC, name="static")

    return Ear(probed, jitted), trace


def missing(ear: Ear) -> list[str]:
    """What was not heard and is needed for a verdict, one line each. The rest is noted as lost."""
    import jax

    version = f"JAX {jax.__version__}"
    if not ear.started:
        return [f"{version} does not tell when it traces a function, or which one, in a way that is known here"]
    found = []
    if not ear.arguments:
        found.append(f"{version} does not tell with which arguments it traces a function, in a way that is known here")
    if not ear.ended:
        found.append(f"the end of a trace of {version} is not noticed")
    if names.CLEAR.of(ear.jitted) is None:
        found.append(f"{version} does not let a jitted function start cold")
    if all(getattr(ear.jitted, name, None) is not ear.fun for name in names.HOLDERS):
        found.append(f"{version} does not tell which function is under a jit")
    if not ear.measured:
        names.lose("this JAX does not say how long a trace took, and no second time that there was one")
    if not settings.settings():
        names.lose("this JAX does not tell the settings that are part of the key of its trace cache")
    return found


def compiles_are_heard() -> bool:
    """Whether compiles are announced under the name that is known; JAX itself holds that name in a constant."""
    return names.COMPILE_CONSTANT.find() in names.COMPILE_EVENT
