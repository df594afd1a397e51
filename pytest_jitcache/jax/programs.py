"""The program that JAX made of a function: the one in its cache, the one that it would make now, and what differs.

Public is `jax.jit(f).trace(...)`: for abstract arguments that were traced before it gives the cached program, and runs
nothing. Beyond that are read, of `jax.api_util` and of the programs (jaxprs) themselves: `shaped_abstractify`, `consts`,
`eqns`, `params`, `val`. Tried on JAX 0.4.35 to 0.12.0.1. Where one is missing, `compares()` says so.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np

from pytest_jitcache.captures.digest import digest

__tracebackhide__ = True


@functools.cache
def compares() -> bool:
    """Whether this JAX gives what is needed to compare two programs."""
    import jax
    import jax.api_util

    return hasattr(jax.api_util, "shaped_abstractify") and hasattr(jax.jit(_nothing), "trace")


def _nothing() -> None: ...


# --- calls ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Call:
    """How a function was called when it was traced, without an array: enough to look its program up again.

    Raises, where it is used, LookupError: a static argument is gone.

    Attributes:
        args: abstract values in place of arrays and numbers; static arguments as they are, or a weak reference.
    """

    fun: weakref.ref[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()

    def statics(self) -> dict[str, Any]:
        """The static arguments that are still there, by position or name."""
        found = {self._name(n): _alive(self.args[n]) for n in _positions(self.args, self.static_argnums)}
        return {**found, **{n: _alive(self.kwargs[n]) for n in self.static_argnames if n in self.kwargs}}

    def _name(self, position: int) -> str:
        try:
            return list(inspect.signature(self.fun()).parameters)[position]  # type: ignore[arg-type]
        except (TypeError, ValueError, IndexError):
            return f"argument {position}"

    @property
    def key(self) -> object:
        """What tells two calls of a function apart, as text."""
        return (str(self.args), str(sorted(self.kwargs.items())))


_GONE = object()


@dataclass(frozen=True)
class _Weakly:
    """A static argument that is kept by nobody but its owner."""

    ref: weakref.ref[Any]

    def __str__(self) -> str:
        return str(id(self.ref()))

    __repr__ = __str__


def call_of(
    fun: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Call | None:
    """The call in abstract form, or None where it has none.

    What JAX's own cache keeps, too, as long as the function lives is kept for as long: the static part of pytrees.
    """
    try:
        made: list[weakref.ref[Call]] = []
        ref = weakref.ref(fun, lambda _: _forget(made))
        numbers = _positions(args, static_argnums)
        call = Call(
            ref,
            tuple(_static(a) if n in numbers else _abstract(a) for n, a in enumerate(args)),
            {name: _static(a) if name in static_argnames else _abstract(a) for name, a in kwargs.items()},
            tuple(static_argnums),
            tuple(static_argnames),
        )
        made.append(weakref.ref(call))
        return call
    except Exception:  # no arrays, a function that takes no weak reference
        return None


def _forget(made: list[weakref.ref[Call]]) -> None:
    for call in [ref() for ref in made]:
        if call is not None:
            call.args, call.kwargs = (), {}


def _positions(args: Sequence[Any], static_argnums: Sequence[int]) -> set[int]:
    return {n % len(args) for n in static_argnums if -len(args) <= n < len(args)}


def _abstract(tree: Any) -> Any:
    import jax
    from jax.api_util import shaped_abstractify

    return jax.tree_util.tree_map(shaped_abstractify, tree)


def _static(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | type):
        return value
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_static(one) for one in value)
    try:
        return _Weakly(weakref.ref(value))
    except TypeError:
        return value


def _alive(value: Any) -> Any:
    if isinstance(value, _Weakly):
        there = value.ref()
        if there is None:
            raise LookupError("a static argument is gone")
        return there
    return tuple(_alive(one) for one in value) if type(value) is tuple else value


def _arguments(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    numbers = _positions(call.args, call.static_argnums)
    args = tuple(_alive(a) if n in numbers else a for n, a in enumerate(call.args))
    return args, {name: _alive(a) if name in call.static_argnames else a for name, a in call.kwargs.items()}


# --- programs -------------------------------------------------------------------------------------------------------


class _Runs(BaseException):
    """The body of a function starts: its program is in no cache."""


def cached(call: Call, codes: frozenset[CodeType]) -> Any:
    """The program that a warm call runs, or None where a call would trace. Runs nothing and puts nothing in a cache.

    Args:
        call: how the function is called.
        codes: the code of the function under the jit, by which a run of it is noticed and stopped.
    """
    import jax

    fun = call.fun()
    if fun is None or not codes:
        return None
    args, kwargs = _arguments(call)

    def stop(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            raise _Runs

    jitted: Any = jax.jit(fun, static_argnums=call.static_argnums, static_argnames=call.static_argnames)
    before = sys.getprofile()
    sys.setprofile(stop)
    try:
        return jitted.trace(*args, **kwargs).jaxpr
    except _Runs:
        return None
    finally:
        sys.setprofile(before)


def fresh(call: Call) -> Any:
    """The program that JAX makes of the function now. Runs its body, and puts nothing in the cache of the function.

    Raises:
        Exception: whatever the body raises.
    """
    import jax

    fun: Any = call.fun()
    args, kwargs = _arguments(call)

    @functools.wraps(fun, updated=())
    def again(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    jitted: Any = jax.jit(again, static_argnums=call.static_argnums, static_argnames=call.static_argnames)
    with _around(fun):
        return jitted.trace(*args, **kwargs).jaxpr


def _around(fun: Any) -> contextlib.AbstractContextManager[Any]:
    """What a call has to happen in: the function that `nnx.jit` jits expects what `nnx.update_context` opens."""
    tag = getattr(fun, "ctxtag", None)
    update_context = getattr(sys.modules.get("flax.nnx"), "update_context", None)
    return update_context(tag) if tag is not None and update_context is not None else contextlib.nullcontext()


@contextlib.contextmanager
def random_numbers_kept() -> Iterator[None]:
    """What runs in here draws no number from the generators of `random` and `numpy` that is missed after it."""
    pythons, numpys = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(pythons)
        np.random.set_state(numpys)


# --- what differs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Apart:
    """The first place in which two programs differ.

    Attributes:
        what: in words, such as `the constant 1.0, 2.0 now`.
        structure: whether other operations are done, and not the same with other numbers.
    """

    what: str
    structure: bool


@dataclass
class _Comparison:
    changed_arrays: Mapping[int, tuple[str, ...]]
    found: list[Apart] = field(default_factory=list)

    def differ(self, what: str, structure: bool = True) -> bool:
        self.found.append(Apart(what, structure))
        return False

    def programs(self, a: Any, b: Any) -> bool:
        """Whether two (closed) programs are the same; the first difference is noted."""
        if a is b and not self.changed_arrays:
            return True
        a_consts, b_consts = getattr(a, "consts", ()), getattr(b, "consts", ())
        a, b = getattr(a, "jaxpr", a), getattr(b, "jaxpr", b)
        for one, other in zip(a_consts, b_consts, strict=False):
            if not self.constants(one, other):
                return False
        numbers: dict[Any, int] = {}
        others: dict[Any, int] = {}
        for var, other in zip(self.variables(a), self.variables(b), strict=False):
            if str(var.aval) != str(other.aval):
                return self.differ(f"an array of {_type(var)}, {_type(other)} now")
            numbers[var], others[other] = len(numbers), len(others)
        for eqn, now in zip(a.eqns, b.eqns, strict=False):
            if not self.equations(eqn, now, numbers, others):
                return False
        if len(a.eqns) != len(b.eqns):
            more = (a if len(a.eqns) > len(b.eqns) else b).eqns[min(len(a.eqns), len(b.eqns))]
            gone = len(a.eqns) > len(b.eqns)
            return self.differ(f"`{more.primitive}` is {'no longer' if gone else 'now also'} done")
        if len(self.variables(a)) != len(self.variables(b)) or len(a.outvars) != len(b.outvars):
            return self.differ("another number of inputs, constants or outputs")
        return all(self.atoms(v, w, numbers, others) for v, w in zip(a.outvars, b.outvars, strict=True))

    @staticmethod
    def variables(jaxpr: Any) -> list[Any]:
        return [*jaxpr.constvars, *jaxpr.invars]

    def equations(self, a: Any, b: Any, numbers: dict[Any, int], others: dict[Any, int]) -> bool:
        if str(a.primitive) != str(b.primitive):
            return self.differ(f"`{a.primitive}`, `{b.primitive}` now")
        if len(a.invars) != len(b.invars) or len(a.outvars) != len(b.outvars):
            return self.differ(f"`{a.primitive}` of other operands")
        for v, w in zip(a.invars, b.invars, strict=True):
            if not self.atoms(v, w, numbers, others):
                return False
        if a.params.keys() != b.params.keys():
            return self.differ(f"`{a.primitive}` with other parameters")
        for name in a.params:
            if not self.parameters(f"{a.primitive}", name, a.params[name], b.params[name]):
                return False
        for v, w in zip(a.outvars, b.outvars, strict=True):
            numbers[v], others[w] = len(numbers), len(others)
        return True

    def atoms(self, a: Any, b: Any, numbers: dict[Any, int], others: dict[Any, int]) -> bool:
        if hasattr(a, "val") or hasattr(b, "val"):
            if not (hasattr(a, "val") and hasattr(b, "val")):
                return self.differ("a constant that was computed, or the other way round")
            return self.constants(a.val, b.val)
        if numbers.get(a) != others.get(b):
            return self.differ("an operation on another operand")
        return True

    def constants(self, a: Any, b: Any) -> bool:
        if self.changed_arrays and self.was_changed(a, b):
            return self.differ("a captured array whose content was changed", structure=False)
        if a is b or _is_tracer(a) or _is_tracer(b):
            return True
        try:
            x, y = _plain(a), _plain(b)
        except Exception:  # deleted, donated, on devices of another process
            return True
        if x.shape != y.shape or x.dtype != y.dtype:
            return self.differ(f"a constant {_short(x)}, {_short(y)} now")
        if x.tobytes() != y.tobytes() and not _equal(x, y):
            return self.differ(f"a constant {_short(x)}, {_short(y)} now", structure=False)
        return True

    def was_changed(self, a: Any, b: Any) -> bool:
        """Whether a constant is a numpy array that has been written to, or JAX's copy of one."""
        if id(a) in self.changed_arrays:
            return True
        known = [one for digests in self.changed_arrays.values() for one in digests]
        return a is b and "Array" in type(a).__name__ and digest(a) in known

    def parameters(self, primitive: str, name: str, a: Any, b: Any) -> bool:
        """Whether two parameters of an operation are the same. What has no value of its own (a function) is."""
        if a is b:
            return True
        if hasattr(a, "eqns") or hasattr(getattr(a, "jaxpr", None), "eqns"):
            same = hasattr(b, "eqns") or hasattr(getattr(b, "jaxpr", None), "eqns")
            return self.programs(a, b) if same else self.differ(f"`{primitive}` with another {name}")
        if isinstance(a, tuple | list) and isinstance(b, tuple | list):
            if len(a) != len(b):
                return self.differ(f"`{primitive}` with {name}={_cut(a)}, {_cut(b)} now")
            return all(self.parameters(primitive, name, x, y) for x, y in zip(a, b, strict=True))
        if hasattr(a, "__array__") and hasattr(b, "__array__"):
            return self.constants(a, b)
        if type(a) is not type(b):
            return self.differ(f"`{primitive}` with {name}={_cut(a)}, {_cut(b)} now")
        plain = isinstance(a, bool | int | float | complex | str | bytes)
        kind: Any = type(a)
        if not plain and (callable(a) or kind.__eq__ is object.__eq__ or "0x" in repr(a)):
            return True
        try:
            alike = bool(a == b) or repr(a) == repr(b)
        except Exception:
            return True
        return alike or self.differ(f"`{primitive}` with {name}={_cut(a)}, {_cut(b)} now")


def difference(before: Any, now: Any, changed_arrays: Mapping[int, tuple[str, ...]] | None = None) -> Apart | None:
    """The first difference between two programs, or None.

    Args:
        before: the program in the cache.
        now: the program of a trace made just now.
        changed_arrays: numpy arrays that were changed in place since, by id, and the digests of what they held. JAX 0.6
            and earlier keeps them in the program as they are, though the compiled one has a copy; later ones keep one
            copy of each, made when it was first seen, even for a function that is traced for the first time.
    """
    comparison = _Comparison(changed_arrays or {})
    return None if comparison.programs(before, now) else comparison.found[0]


def _is_tracer(value: Any) -> bool:
    import jax

    return isinstance(value, jax.core.Tracer)


def _plain(value: Any) -> np.ndarray[Any, Any]:
    import jax

    if "key" in str(getattr(value, "dtype", "")):  # key<fry>
        value = jax.random.key_data(value)
    return np.asarray(value)


def _equal(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    try:
        return bool(np.array_equal(x, y, equal_nan=True)) and not bool(np.any(np.signbit(x) != np.signbit(y)))
    except TypeError:
        return False


def _type(var: Any) -> str:
    return str(var.aval)


def _short(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return str(array)
    return f"{array.dtype}{list(array.shape)}" if array.size > 4 else str(array.tolist())


def _cut(value: object, limit: int = 40) -> str:
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
