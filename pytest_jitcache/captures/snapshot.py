"""What a function captures, as it is at one moment: path by path, without keeping anything alive.

Captured is what the body finds beside its arguments: closure cells, globals, defaults, the arguments that a partial binds,
the attributes of a bound `self` and of static objects, and the settings of JAX. Helpers that the body calls are followed.
Numbers and short strings are kept by value, numpy arrays as a digest, JAX arrays and other objects by identity. Containers
and objects are looked into `DEPTH` levels deep, and no more than `BUDGET` values are kept in all.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from pytest_jitcache.captures.digest import digests
from pytest_jitcache.captures.reads import reads
from pytest_jitcache.identity import is_jitted
from pytest_jitcache.places import Body, is_library, show
from pytest_jitcache.signature import short_dtype

DEPTH = 4
BUDGET = 400
_LONG = 200  # characters of a string that are kept
_WIDE = 64  # items of a container that are looked at one by one
_CODES = 60  # helpers that are followed
_LARGE = 1 << 14  # bytes of an array that is not looked at after each call

_SCALARS = (bool, int, float, complex, type(None), type(...))


@dataclass(frozen=True)
class Value:
    """One captured value.

    Attributes:
        token: equal for two values that are the same to a program.
        text: how it is shown.
        kind: "number", "array", "choice" (a bool, a string, None, ...), "function", "object", "set" or "container".
        line: where it is read, as `file.py:12`.
        ref: the object, where it is known by identity.
    """

    token: object
    text: str
    kind: str
    line: str = ""
    ref: Any = field(default=None, compare=False)

    def alike(self, other: Value) -> bool:
        """Whether it is the same, or looks the same: the same code, another object of the same class."""
        made_anew = self.kind == other.kind and self.kind in ("function", "object") and self.token is not None
        return self.same(other) or (made_anew and bool(self.token == other.token))

    def same(self, other: Value) -> bool:
        if self.ref is not None and other.ref is not None:
            there = self.ref()
            return there is not None and there is other.ref()
        return self.ref is None and other.ref is None and bool(self.token == other.token)


@dataclass
class Snapshot:
    """What was captured, by path.

    Attributes:
        values: the path, such as `self.gain` or `RATES[0]`, and the value.
        held: the path, and where it begins: "global", "cell", "self", "static", "partial", "default", "setting".
        arrays: numpy arrays that the code reads, weakly, each with its digests.
        settings: those of JAX.
        names: all that the code looks up by name.
        advanced: paths whose values the body itself has changed.
    """

    values: dict[str, Value] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    advanced: frozenset[str] = frozenset()
    arrays: list[tuple[Any, tuple[str, ...]]] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One captured value that is another one now."""

    path: str
    before: Value
    after: Value
    held: str

    def __str__(self) -> str:
        if self.before.text == self.after.text:
            return f"{self.path}: {self.before.text} when traced, another one now"
        return f"{self.path}: {self.before.text} when traced, {self.after.text} now"


_ABSENT = Value("absent", "absent", "choice")


def changes(before: Snapshot, now: Snapshot) -> list[Change]:
    """What differs, without the containers and objects of which something is told that they hold. Settings come last."""
    found = []
    for path in {**before.values, **now.values}:
        a, b = before.values.get(path, _ABSENT), now.values.get(path, _ABSENT)
        if not a.same(b):
            found.append(Change(path, a, b, before.held.get(path) or now.held[path]))
    whole = [c.path for c in found if "container" in (c.before.kind, c.after.kind)]
    found = [c for c in found if not any(_is_in(c.path, path) for path in whole)]
    paths = [c.path for c in found]
    found = [c for c in found if not any(_is_in(path, c.path) for path in paths)]
    for name, old in before.settings.items():
        new = now.settings.get(name)
        if old is not new and old != new:
            found.append(Change(name, Value(old, repr(old), "choice"), Value(new, repr(new), "choice"), "setting"))
    return found


def differences(before: Snapshot, now: Snapshot) -> list[Change]:
    """As `changes`, between two functions (or objects) made anew: what they hold may be made anew as well."""
    found = []
    for path in {**before.values, **now.values}:
        a, b = before.values.get(path), now.values.get(path)
        if (a is None or b is None or not a.alike(b)) and path not in before.advanced:
            held = before.held.get(path) or now.held[path]
            found.append(Change(path, a or _ABSENT, b or _ABSENT, held))
    return [c for c in found if not any(c is not o and _is_in(o.path, c.path) for o in found)]


def _is_in(path: str, outer: str) -> bool:
    return path.startswith((f"{outer}.", f"{outer}["))


def changed_arrays(before: Snapshot) -> dict[int, tuple[str, ...]]:
    """The numpy arrays whose content is another one now, by id, and what `digests` gave of the content before."""
    found = {}
    for ref, known in before.arrays:
        array = ref()
        if array is not None and digests(array) != known:
            found[id(array)] = known
    return found


def snapshot(objects: Iterable[Any], statics: Mapping[str, Any] | None = None) -> Snapshot:
    """What a function captures now.

    Args:
        objects: the function and all that it is wrapped around, from the outside in.
        statics: its static arguments, by name.
    """
    return _Reader().read(objects, statics or {})


def held_by(value: Any, name: str) -> Snapshot:
    """What a static value holds: the captures of a function, or all of an object.

    Args:
        value: the function or object.
        name: of the argument.
    """
    reader = _Reader(whole=not isinstance(value, _FUNCTIONS))
    return reader.read([value], {}) if isinstance(value, _FUNCTIONS) else reader.read([], {name: value})


def look(
    objects: Iterable[Any], statics: Mapping[str, Any] | None = None, ignored: Collection[str] = ()
) -> Callable[[], bool]:
    """A quick look, for after each warm call: whether all that is captured is the same as now.

    It says no too often rather than too seldom (an equal number is another object), but for what large arrays hold. It
    keeps the function alive, and of what that captures numbers and strings only.

    Args:
        objects: the function and all that it is wrapped around, from the outside in.
        statics: its static arguments, by name.
        ignored: paths that are not looked at.
    """
    reader = _Reader()
    found = reader.read(objects, statics or {})
    known: dict[str, Any] = dict(reader.roots)
    parts = []
    for number, (path, value) in enumerate(found.values.items()):
        if path in ignored:
            continue
        fetch, name = reader.fetches[path], f"known{number}"
        try:
            now = eval(fetch, dict(known))
        except Exception:  # a key that has no literal
            continue
        if value.kind in ("number", "choice"):
            known[name] = now
            parts.append(f"{fetch} is {name}")
        elif value.ref is not None:
            known[name] = value.ref
            same = f"{fetch}.__self__" if isinstance(now, types.MethodType) else fetch
            parts.append(f"{name}() is {same}")
        elif value.kind in ("container", "set"):
            parts.append(f"len({fetch}) == {len(now)}")
        elif value.kind == "array" and now.nbytes <= _LARGE:
            known[name] = now.tobytes()
            parts.append(f"{fetch}.tobytes() == {name}")
    return eval("lambda: " + (" and ".join(parts) or "True"), known)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Spot:
    """Where a value is: its path for the reader, and an expression that fetches it."""

    path: str
    fetch: str
    held: str
    line: str = ""
    depth: int = 0

    def attribute(self, name: str, line: str) -> _Spot:
        return _Spot(f"{self.path}.{name}", f"{self.fetch}.{name}", self.held, line, self.depth + 1)

    def item(self, key: object) -> _Spot:
        shown = repr(key) if isinstance(key, str | int | bool | float | bytes | tuple) else type(key).__name__
        return _Spot(f"{self.path}[{shown}]", f"{self.fetch}[{shown}]", self.held, self.line, self.depth + 1)


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


class _Reader:
    """Follows a function to all that it captures."""

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole  # look at all attributes, not only at those that some code names
        self.found = Snapshot()
        self.names: dict[str, str] = {}  # attributes and keys that some code reads, with the line
        self.seen: set[int] = set()
        self.codes: set[CodeType] = set()
        self.pending: list[tuple[_Spot, Any]] = []
        self.paths: dict[str, list[Any]] = {}
        self.roots: dict[str, Any] = {}  # what the expressions begin with
        self.fetches: dict[str, str] = {}  # path -> the expression

    def read(self, objects: Iterable[Any], statics: Mapping[str, Any]) -> Snapshot:
        for one in objects:
            self.function(one)
        for name, value in statics.items():
            self.methods(value)
            self.add(name, self.root(value), value, "static")
        while self.pending:
            self.value(*self.pending.pop(0))
        self.found.settings = {} if self.whole else _settings()
        self.found.names.update(self.names)
        return self.found

    def root(self, value: Any) -> str:
        name = f"root{len(self.roots)}"
        self.roots[name] = value
        return name

    # -- code

    def function(self, fun: Any) -> None:
        """Note what a callable captures, and what the helpers capture that it may call."""
        if id(fun) in self.seen or len(self.codes) > _CODES:
            return
        self.seen.add(id(fun))
        if isinstance(fun, functools.partial):
            self.function(fun.func)
            at = self.root(fun)
            code = getattr(fun.func, "__code__", None)
            names = code.co_varnames[: code.co_argcount] if code is not None else ()
            for number, value in enumerate(fun.args):
                name = names[number] if number < len(names) else f"argument {number} of the partial"
                self.add(name, f"{at}.args[{number}]", value, "partial")
            for name, value in fun.keywords.items():
                self.add(name, f"{at}.keywords[{name!r}]", value, "partial")
        elif isinstance(fun, types.MethodType):
            self.function(fun.__func__)
            inner = fun.__func__
            name = inner.__code__.co_varnames[0] if isinstance(inner, types.FunctionType) else "self"
            self.add(name, f"{self.root(fun)}.__self__", fun.__self__, "self")
        elif isinstance(fun, types.FunctionType):
            self.python(fun)
        elif is_jitted(fun) or isinstance(fun, type | types.BuiltinFunctionType):
            return  # a jitted function is judged by itself
        elif callable(fun) and _is_users(type(fun)):
            self.add("self", self.root(fun), fun, "self")

    def python(self, fun: types.FunctionType) -> None:
        code = fun.__code__
        self.codes.add(code)
        found = reads(code)
        users = not is_library(code.co_filename)
        where = show(code.co_filename)
        for name, line in found.attributes.items():
            self.names.setdefault(name, f"{where}:{line}")
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if name != "__class__":
                line = found.cells.get(name, 0)
                self.add(
                    name, f"{self.root(cell)}.cell_contents", value, "cell", f"{where}:{line}" if line and users else ""
                )
        module = self.root(fun.__globals__) if found.globals else ""
        self.found.names.update(found.globals)
        for name, line in found.globals.items():
            if name in fun.__globals__:
                self.add(name, f"{module}[{name!r}]", fun.__globals__[name], "global", f"{where}:{line}")
        if not users:
            return
        at = self.root(fun)
        names = code.co_varnames[: code.co_argcount]
        defaults = fun.__defaults__ or ()
        for number, (name, value) in enumerate(zip(names[len(names) - len(defaults) :], defaults, strict=True)):
            self.add(name, f"{at}.__defaults__[{number}]", value, "default")
        for name, value in (fun.__kwdefaults__ or {}).items():
            self.add(name, f"{at}.__kwdefaults__[{name!r}]", value, "default")

    def methods(self, value: Any) -> None:
        """Note what those methods of the user's classes read that the code may call."""
        kind = value if isinstance(value, type) else type(value)
        for base in kind.__mro__:
            if not _is_users(base):
                continue
            for name, method in list(vars(base).items()):
                inner = getattr(method, "fget", None) or getattr(method, "__func__", method)
                if isinstance(inner, types.FunctionType) and (name == "__call__" or name in self.names):
                    self.function(inner)

    # -- values

    def add(self, path: str, fetch: str, value: Any, held: str, line: str = "") -> None:
        if isinstance(value, _FUNCTIONS):
            self.function(value)
        elif not isinstance(value, types.ModuleType) and _plain(value) is None:
            self.methods(value)
        known = self.paths.setdefault(path, [])
        if not any(one is value for one in known):
            known.append(value)
            unique = path if len(known) == 1 else f"{path} ({len(known)})"  # helpers have names of their own
            self.pending.append((_Spot(unique, fetch, held, line), value))

    def value(self, spot: _Spot, value: Any) -> None:
        if len(self.found.values) >= BUDGET or spot.path in self.found.values:
            return
        plain = _plain(value)
        if plain is not None:
            self.keep(spot, Value(*plain, line=spot.line))
        elif isinstance(value, types.ModuleType):
            if not is_library(getattr(value, "__file__", None) or "<frozen"):
                self.attributes(spot, vars(value))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            return
        elif hasattr(value, "dtype") and hasattr(value, "shape"):
            self.array(spot, value)
        elif isinstance(value, types.MethodType):
            self.function(value)
            name = f"method {getattr(value.__func__, '__qualname__', '')}"
            self.keep(spot, _by_identity(value.__self__, name, "function", spot.line, _token(value)))
        elif isinstance(value, _FUNCTIONS):
            self.function(value)
            name = str(getattr(value, "__qualname__", "a partial")).replace(".<locals>", "")
            self.keep(spot, _by_identity(value, name, "function", spot.line, _token(value)))
        elif isinstance(value, type):
            self.keep(spot, _by_identity(value, value.__qualname__, "function", spot.line))
        elif is_jitted(value) or isinstance(value, weakref.ref | types.GeneratorType):
            self.keep(spot, _by_identity(value, type(value).__name__, "function", spot.line, _token(value)))
        elif spot.depth < DEPTH and (id(value) not in self.seen or not spot.depth):
            self.seen.add(id(value))
            self.inside(spot, value)

    def keep(self, spot: _Spot, value: Value) -> None:
        self.found.values[spot.path] = value
        self.found.held[spot.path] = spot.held
        self.fetches[spot.path] = spot.fetch

    def array(self, spot: _Spot, value: Any) -> None:
        text = f"{short_dtype(str(value.dtype))}[{','.join(map(str, value.shape))}]"
        if not type(value).__module__.startswith("numpy"):
            self.keep(spot, _by_identity(value, text, "array", spot.line))
            return
        known = digests(value)
        if value.shape:
            self.found.arrays.append((weakref.ref(value), known))
        shown = str(value.tolist()) if value.size <= 4 else text
        self.keep(spot, Value((text, known), shown, "array", spot.line))

    def inside(self, spot: _Spot, value: Any) -> None:
        """Look into a container or an object."""
        kind = type(value)
        if isinstance(value, Mapping):
            items = list(value.items())
            if kind.__module__ == "os":  # the environment: what the code names
                items = [(k, v) for k, v in items if k in self.names]
            else:
                self.container(spot, value)
            for key, one in items[:_WIDE]:
                self.value(spot.item(key), one)
        elif isinstance(value, list | tuple):
            self.container(spot, value)
            names = getattr(kind, "_fields", None)
            for number, one in enumerate(value[:_WIDE]):
                self.value(spot.attribute(names[number], spot.line) if names else spot.item(number), one)
        elif isinstance(value, set | frozenset):
            texts = sorted(_text(one) for one in value)
            shown = "{" + ", ".join(texts[:4]) + (", ..." if len(texts) > 4 else "") + "}"
            self.keep(spot, Value((kind.__name__, tuple(texts)), shown, "set", spot.line))
        else:
            self.methods(value)
            looks = f"{kind.__module__}.{kind.__qualname__}"
            self.keep(spot, _by_identity(value, kind.__name__, "object", spot.line, looks))
            slots = {n for base in kind.__mro__ for n in _slots(base)}
            of_class = {n: v for base in reversed(kind.__mro__) if _is_users(base) for n, v in vars(base).items()}
            parts = {n: v for n, v in of_class.items() if n not in slots and _is_data(v)}
            wanted = slots if self.whole else slots & self.names.keys()
            parts.update({n: getattr(value, n) for n in sorted(wanted) if n != "__weakref__" and hasattr(value, n)})
            self.attributes(spot, {**parts, **(getattr(value, "__dict__", None) or {})})

    def container(self, spot: _Spot, value: Any) -> None:
        kind = type(value).__name__
        inner = [*value, *value.values()] if isinstance(value, Mapping) else value
        shown = repr(value) if len(value) <= 8 and all(_plain(one) is not None for one in inner) else ""
        text = shown if 0 < len(shown) <= 40 else f"{kind} of {len(value)}"
        self.keep(spot, Value((kind, len(value)), text, "container", spot.line))

    def attributes(self, spot: _Spot, parts: Mapping[str, Any]) -> None:
        names = dict.fromkeys(parts, spot.line) if self.whole else dict(self.names)
        for name, line in names.items():
            if name in parts and not name.startswith("__"):
                self.value(spot.attribute(name, line), parts[name])


def _settings() -> dict[str, Any]:
    import jax

    return dict(getattr(jax.config, "values", {}))


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_users(kind: type) -> bool:
    return not is_library(getattr(sys.modules.get(kind.__module__), "__file__", None) or "<frozen")


def _is_data(value: Any) -> bool:
    return not isinstance(value, types.FunctionType | classmethod | staticmethod | property | type) and not hasattr(
        value, "__get__"
    )


def _plain(value: Any) -> tuple[object, str, str] | None:
    """The token, the text and the kind of a value that is small and plain."""
    if isinstance(value, bool) or value is None or value is ...:
        return (type(value), value), repr(value), "choice"
    if isinstance(value, int | float | complex) and type(value) in _SCALARS:
        return (type(value), repr(value)), repr(value), "number"
    if isinstance(value, str | bytes) and type(value) in (str, bytes):
        short = value if len(value) <= _LONG else (len(value), hash(value))
        return (type(value), short), repr(value[:_LONG])[:40], "choice"
    if isinstance(value, enum.Enum):
        return (type(value).__qualname__, value.name), f"{type(value).__name__}.{value.name}", "choice"
    if type(value).__module__.startswith("numpy") and not hasattr(value, "shape"):
        return (type(value).__name__, str(value)), str(value), "choice"
    return None


def _by_identity(value: Any, text: str, kind: str, line: str, token: object = None) -> Value:
    """A value that is known by identity; the token says what it looks like, where that can be said."""
    try:
        return Value(token, text, kind, line, weakref.ref(value))
    except TypeError:
        return Value(id(value), text, kind, line)


def _token(function: Any) -> object:
    """The code of a callable; None for what has none."""
    inner = getattr(function, "__func__", None) or getattr(function, "func", None) or function
    code = getattr(inner, "__code__", None) or getattr(getattr(inner, "__wrapped__", None), "__code__", None)
    return None if code is None else Body.of(code)


def _text(value: Any) -> str:
    plain = _plain(value)
    return plain[1] if plain is not None else f"{type(value).__name__} {id(value)}"
