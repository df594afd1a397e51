"""What a function holds, so that one made anew can be told from another one of the same place.

`jax.jit(lambda x: x @ w)` in a helper makes the same function again and again; `jax.jit(lambda x: model(x))` with another
`model` does not. Two functions of one place hold the same if what they capture is equal. Arrays and floats count by their
abstract type, since those could be passed as arguments; all else counts by value.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from typing import Any

from pytest_jitcache.places import Body
from pytest_jitcache.signature import reference

_BY_VALUE = (bool, int, str, bytes, type(None), type(...), enum.Enum)
_BUDGET = 400


class _Whole:
    """An object and what it holds: equal to itself, whatever becomes of it, and to another one that holds the same.

    Args:
        value: the object. Held weakly; what can't be, and is not looked into, is small and plain (a slice, an `object()`).
        parts: what it holds; None for what is not looked into, and is compared by its own `==`.
    """

    __slots__ = ("parts", "ref")

    def __init__(self, value: object, parts: object = None) -> None:
        self.parts = parts
        self.ref = reference(value, value if parts is None else None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Whole):
            return False
        mine, theirs = self.ref(), other.ref()
        if mine is not None and mine is theirs:
            return True
        if self.parts is not None:
            return bool(self.parts == other.parts)
        try:
            return mine is not None and type(mine) is type(theirs) and bool(mine == theirs)
        except Exception:  # no plain answer, as from arrays
            return False

    __hash__ = None  # type: ignore[assignment]


class _Reader:
    def __init__(self) -> None:
        self.left = _BUDGET
        self.above: set[int] = set()

    def read(self, value: Any) -> object:
        self.left -= 1
        if isinstance(value, _BY_VALUE):
            return (type(value), value)
        if isinstance(value, float | complex):
            return type(value)
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return _Whole(value)
        if isinstance(value, weakref.ref):
            return self.read(value())
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return ("array", str(value.dtype), str(value.shape))
        if self.left < 0:
            return _Whole(value)
        if id(value) in self.above:
            return "itself"
        self.above.add(id(value))
        try:
            return _Whole(value, self._inside(value))
        finally:
            self.above.discard(id(value))

    def _inside(self, value: Any) -> object:
        kind = type(value)
        if isinstance(value, types.FunctionType):
            cells = []
            for cell in value.__closure__ or ():
                try:
                    cells.append(self.read(cell.cell_contents))
                except ValueError:
                    cells.append("empty")
            defaults = [self.read(v) for v in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())]
            return (Body.of(value.__code__), cells, defaults)
        if isinstance(value, functools.partial):
            return (kind, self.read(value.func), [self.read(a) for a in value.args], self._mapping(value.keywords))
        if isinstance(value, types.MethodType):
            return (kind, self.read(value.__func__), self.read(value.__self__))
        if isinstance(value, tuple | list):
            return (kind, [self.read(v) for v in value])
        if isinstance(value, set | frozenset):
            return (kind, sorted(map(repr, value)))
        if isinstance(value, dict):
            return (kind, self._mapping(value))
        inner = getattr(value, "__wrapped__", None)
        if callable(inner):
            return (kind, self.read(inner))
        held = getattr(value, "__dict__", None)
        slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
        if not held and not slots:
            return (kind, "empty") if kind.__module__ != "builtins" and _has_python_state(kind) else None
        parts = dict(held or {})
        parts.update({name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)})
        return (kind, self._mapping(parts))

    def _mapping(self, value: dict[Any, Any]) -> object:
        return [(self.read(k), self.read(v)) for k, v in value.items()]


def _has_python_state(kind: type) -> bool:
    """Whether all that an instance holds is in its `__dict__` and slots."""
    return all(base is object or base.__flags__ & 0x200 for base in kind.__mro__)  # Py_TPFLAGS_HEAPTYPE


def content(value: object) -> object:
    """Something that compares equal for two callables (or static values) that hold the same. Keeps no array alive."""
    try:
        return _Reader().read(value)
    except Exception:  # a property, or a comparison, of the user's that raises
        return _Whole(value)
