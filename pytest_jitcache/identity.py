"""Which function is it? What a traced callable unwraps to, and whether it is an earlier one made anew.

Two traced callables that come from the same place in the source are the same function made anew when the earlier one is
no longer alive at the second trace. While it is alive they are two functions.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from pytest_jitcache.jax import names
from pytest_jitcache.places import Body, is_library, is_machinery, is_wrapping
from pytest_jitcache.signature import ByIdentity, kind_token

Layer = Body | type | ByIdentity | str


@dataclass(frozen=True)
class Unwrapped:
    """A callable taken apart, from the outside in.

    Attributes:
        layers: the code (or type) of each wrapper and, last, of the function itself: the same for a function made anew.
        kinds: what each layer is, in words ("grad", "partial", "bound method", "lambda", "function", "jit", ...).
        codes: the code objects of the layers that are not machinery.
        target: the innermost callable, or None where it is the machinery's own.
        name: its `__name__`.
    """

    layers: tuple[Layer, ...]
    kinds: tuple[str, ...]
    codes: tuple[CodeType, ...]
    name: str
    qualname: str
    filename: str
    line: int
    machinery: bool  # the outermost layer carries a call on and is no body itself
    found: bool  # the innermost layer is not machinery
    has_cache: bool  # a layer in between has a trace cache of its own (a jit, a checkpoint)
    objects: tuple[Any, ...] = field(repr=False, compare=False, default=())

    @property
    def innermost(self) -> Any:
        """The object whose identity is the user's: the innermost function, or the method or partial around it."""
        own = [
            o for o in self.objects if isinstance(o, types.FunctionType) and not is_machinery(o.__code__.co_filename)
        ]
        if not own:
            return None
        index = self.objects.index(own[0])
        before = self.objects[index - 1] if index else None
        return before if isinstance(before, types.MethodType | functools.partial) else own[0]


def is_jitted(value: object) -> bool:
    """Whether a value has JAX's interface of a jitted function."""
    kind = type(value)
    if isinstance(value, types.FunctionType):  # pmap of JAX 0.8 and later
        return hasattr(value, "lower") and is_machinery(value.__code__.co_filename)
    return (
        callable(value) and any(hasattr(kind, name) for name in ("lower", *names.CLEAR)) and not isinstance(value, type)
    )


def unwrap(function: Any) -> Unwrapped:
    """Follow wrappers, partials, methods and closures to the function that the user wrote."""
    layers: list[Layer] = []
    kinds: list[str] = []
    codes: list[CodeType] = []
    objects: list[Any] = []
    has_cache = False
    seen: set[int] = set()
    current = function
    first_machinery: bool | None = None
    owner: Any = None  # the user's class whose method it is
    while current is not None and id(current) not in seen and len(layers) < 16:
        seen.add(id(current))
        objects.append(current)
        following: Any = None
        if _module_of(type(current)) == "pytest_jitcache":  # a guard that is guarded, or jitted, itself
            objects.pop()
            following = current.__wrapped__
        elif isinstance(current, functools.partial):
            layers.append("partial")
            kinds.append("partial")
            following = current.func
        elif isinstance(current, types.MethodType):
            bearer: Any = type(current.__self__)
            users = not is_machinery(_file_of_type(bearer))
            following = None if users else _held(current.__self__)  # the method under the pmap of JAX 0.8
            if following is None:
                layers.append("method")
                kinds.append("bound method")
                following = current.__func__
            if users and not isinstance(current.__self__, type):
                owner = bearer
        elif isinstance(current, types.FunctionType) and not is_jitted(current):
            code = current.__code__
            layers.append(Body.of(code))
            boundary = code.co_name in names.BOUNDARY  # JAX puts it around each public function
            if not boundary:
                kinds.append(kind_of_code(code))
            machinery = is_machinery(code.co_filename)
            if first_machinery is None:
                first_machinery = machinery
            if not machinery:
                codes.append(code)
            following = _closed_over(current) if boundary else getattr(current, "__wrapped__", None)
            if machinery and code.co_name in names.REMAT and not codes:
                has_cache = True
            if machinery and not callable(following):
                following = _closed_over(current)
            elif not machinery and not (callable(following) and following in _closure_values(current)):
                following = None  # functools.wraps as decoration: the function itself is the body
        elif is_jitted(current):
            layers.append(type(current))
            kinds.append("jit")
            has_cache = has_cache or not codes
            if first_machinery is None:
                first_machinery = True
            following = _held(current)
        elif isinstance(current, types.BuiltinFunctionType):
            layers.append(current.__qualname__)
            kinds.append("built-in")
        elif callable(current):
            kind: Any = type(current)
            held = _held(current) if is_machinery(_file_of_type(kind)) else None
            if held is not None:
                layers.append(kind)
                kinds.append(kind.__name__)
                if first_machinery is None:
                    first_machinery = True
                following = held
            else:
                layers.append(kind_token(kind))
                kinds.append("callable object")
                following = getattr(kind, "__call__", None)  # noqa: B004
                if not isinstance(following, types.FunctionType):
                    following = getattr(following, "__wrapped__", None) or getattr(following, "method", None)
        current = following
    if not codes and current is None and callable(getattr(function, "__wrapped__", None)) and not is_jitted(function):
        inner = unwrap(function.__wrapped__)
        if inner.found:
            layers += inner.layers
            kinds += [k for k in inner.kinds if k not in kinds[-1:]]
            codes += inner.codes
            objects += inner.objects
    last = next((o for o in reversed(objects) if isinstance(o, types.FunctionType)), None)
    user = next(
        (
            o
            for o in reversed(objects)
            if isinstance(o, types.FunctionType) and not is_machinery(o.__code__.co_filename)
        ),
        None,
    )
    shown = user or last
    known = (getattr(o, "__name__", None) for o in (shown, function, objects[-1]))
    name = next(filter(None, known), type(function).__name__)
    if shown is not None:
        filename, line, full = shown.__code__.co_filename, shown.__code__.co_firstlineno, shown.__qualname__
        if name == "__call__" or user is None:
            instance = next((o for o in reversed(objects) if _is_callable_object(o)), None)
            name = getattr(instance, "__name__", type(instance).__name__) if instance is not None else name
    else:
        filename, line, full = "", 0, str(name)
    inherited = user is None and owner is not None  # such as the `apply` of a flax.linen module
    if inherited:
        layers.append(kind_token(owner))
        full = f"{owner.__qualname__}.{name}"
        filename, line = _place_of_class(owner) or (filename, line)
    return Unwrapped(
        tuple(layers), tuple(kinds), tuple(codes), str(name), full, filename, line,
        bool(first_machinery), user is not None or inherited, has_cache, tuple(objects),
    )  # fmt: skip


@functools.cache
def _place_of_class(kind: Any) -> tuple[str, int] | None:
    """File and line of the first function that a class defines itself."""
    places = []
    for value in vars(kind).values():
        while hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        if isinstance(value, types.FunctionType) and not is_machinery(value.__code__.co_filename):
            places.append((value.__code__.co_filename, value.__code__.co_firstlineno))
    return min(places, default=None)


def _is_callable_object(value: Any) -> bool:
    plain: Any = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
    return not isinstance(value, plain) and not is_jitted(value) and _held(value) is None


def kind_of_code(code: CodeType) -> str:
    """In words: a lambda, a nested function, a transform of JAX, or a plain function."""
    if is_machinery(code.co_filename):
        return _maker(code)
    if code.co_name == "<lambda>":
        return "lambda"
    return "nested function" if is_nested(code) else "function"


@functools.cache
def _maker(code: CodeType) -> str:
    """The name of the machinery's function that makes a nested one: `grad` for the `grad_f` that it returns.

    "wrapper" for one that a method makes.
    """
    if not is_nested(code):
        return code.co_name
    if sys.version_info >= (3, 11):
        maker = code.co_qualname.split(".<locals>")[0].rpartition(".")[2]
        return "wrapper" if maker.startswith("__") else maker
    for module in [m for m in sys.modules.values() if getattr(m, "__file__", None) == code.co_filename]:
        for value in map(inspect.unwrap, filter(callable, vars(module).values())):
            if isinstance(value, types.FunctionType) and code in nested_codes(value.__code__):
                return value.__name__
    return "wrapper"


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions that are defined inside one, at any depth."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from nested_codes(inner)


def is_nested(code: CodeType) -> bool:
    """Whether the function is defined inside another one, and so made anew each time that one runs."""
    if sys.version_info >= (3, 11):
        return ".<locals>." in code.co_qualname
    return bool(code.co_flags & 0x10)  # CO_NESTED


def _closure_values(function: types.FunctionType) -> list[Any]:
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue
    return values


def _closed_over(function: types.FunctionType) -> Any:
    """The function that a wrapper of the machinery closes over."""
    free = function.__code__.co_freevars
    values: dict[str, Any] = {}
    for name, cell in zip(free, function.__closure__ or (), strict=False):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    for name in names.HOLDERS:
        if callable(values.get(name)) and not isinstance(values[name], type):
            return values[name]
    wrapped = [f for f in map(names.TRANSFORMED.of, values.values()) if callable(f)]
    candidates = [v for v in values.values() if callable(v) and not isinstance(v, type | weakref.ref)]
    candidates += wrapped + [r() for r in values.values() if isinstance(r, weakref.ref) and callable(r())]
    own = [c for c in candidates if unwrap_file(c) and not is_machinery(unwrap_file(c))]
    return own[0] if own else candidates[0] if len(candidates) == 1 else None


def unwrap_file(value: Any) -> str:
    code = getattr(value, "__code__", None) or getattr(getattr(value, "__func__", None), "__code__", None)
    if code is None and isinstance(value, functools.partial):
        return unwrap_file(value.func)
    return code.co_filename if isinstance(code, CodeType) else ""


def _held(value: Any) -> Any:
    for name in names.HOLDERS:
        try:
            held = getattr(value, name, None)
        except Exception:
            continue
        if callable(held) and held is not value:
            return held
    return None


def _module_of(kind: type) -> str:
    return str(getattr(kind, "__module__", ""))  # some types of old jaxlibs have none


@functools.cache
def _file_of_type(kind: Any) -> str:
    module = sys.modules.get(_module_of(kind))
    return getattr(module, "__file__", None) or ""


# --- made anew, or another one? -------------------------------------------------------------------------------------


_ALWAYS = 64  # living objects of one place up to which each new one makes us look whether the one before is dead
_RECENT = 8  # how many of the latest are looked at when the number of living ones has doubled
_PATIENT = 8  # as many searches in vain, and from then on one is made only when the number of living ones has doubled
_SURE = 4  # as many have been found dead with as many references: the next with as many is dead without a search


class _Place:
    __slots__ = ("by_id", "dead", "dead_references", "free", "given", "next", "searched_at", "times", "vain")

    def __init__(self) -> None:
        self.dead = 0
        self.dead_references = 0
        self.by_id: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.free: list[tuple[int, int]] = []  # when a number was last given, and the number: the latest is last
        self.given: dict[int, int] = {}  # number: when it was last given
        self.next = 0
        self.searched_at = 0
        self.vain = 0
        self.times = 0

    def give(self) -> int:
        """The number that was given last of all those whose objects are dead, or a new one."""
        if self.free:
            number = self.free.pop()[1]
        else:
            number = self.next
            self.next += 1
        self.times += 1
        self.given[number] = self.times
        return number

    def take_back(self, number: int) -> None:
        """The object of a number is dead."""
        self.free.append((self.given[number], number))
        self.free.sort()

    @property
    def latest_lives(self) -> bool:
        """Whether the object that has been given a number last is not known to be dead."""
        return bool(self.by_id) and (not self.free or self.free[-1][0] != self.times)


class Slots:
    """Gives every living object of a place a number; the number of a dead one goes to the next that is made there."""

    def __init__(self) -> None:
        self._places: dict[object, _Place] = {}
        self._lock = threading.RLock()

    def slot(self, place: object, value: Any, cached: bool = False) -> int:
        """The number of `value` among the living objects of `place`.

        Args:
            cached: JAX's caches hold such values, so being alive proves nothing; one that nobody else holds is dead.
        """
        with self._lock:
            here = self._places.setdefault(place, _Place())
            key = id(value)
            known = here.by_id.get(key)
            if known is not None and known[0]() is value:
                return known[1]
            living = len(here.by_id)
            always = living <= _ALWAYS and here.vain < _PATIENT
            if here.latest_lives and (always or living > here.searched_at):
                self._look_for_dead(here, cached, 1 if living <= here.searched_at else _RECENT)
            number = here.give()
            try:
                here.by_id[key] = (weakref.ref(value, functools.partial(_free, here, key)), number)
            except TypeError:  # no weak references: each one counts as the same
                here.take_back(number)
            return number

    def _look_for_dead(self, here: _Place, cached: bool, limit: int) -> None:
        """Find one that is as good as dead among the latest `limit`. Each costs a walk over the whole heap."""
        for key, (ref, number) in list(itertools.islice(reversed(here.by_id.items()), limit if cached else 1)):
            value = ref()
            if value is None or (not cached and in_sight(value)):
                continue
            references = sys.getrefcount(value)
            if here.dead < _SURE or references != here.dead_references:
                if cached:
                    dead = not held_by_user(value)
                else:  # it may be garbage that waits for the collector: whether that has run must not matter
                    del value
                    gc.collect()
                    dead = ref() is None
                if not dead:
                    here.vain += 1
                    continue
                here.dead = here.dead + 1 if references == here.dead_references else 1
                here.dead_references = references
            if here.by_id.pop(key, None) is not None:
                here.take_back(number)
            return
        if here.latest_lives:
            here.searched_at = max(here.searched_at, 2 * len(here.by_id) - 1)


def _free(here: _Place, key: int, ref: Any) -> None:
    known = here.by_id.get(key)
    if known is not None and known[0] is ref:
        del here.by_id[key]
        here.take_back(known[1])


def in_sight(value: object, levels: int = 6, most: int = 10_000) -> bool:
    """Whether a variable of the user's code that runs now leads to a value, so that it is alive for sure."""
    frontier: list[object] = []
    for frame in _users_frames():
        frontier += frame.f_locals.values()
        frontier += [held for held in frame.f_globals.values() if not isinstance(held, types.ModuleType | type)]
    seen: set[int] = set()
    for _ in range(levels):
        fresh = {id(held): held for held in frontier if id(held) not in seen}
        if id(value) in fresh:
            return True
        seen.update(fresh)
        if not fresh or len(seen) > most:
            return False
        inner = [held for held in fresh.values() if not _leads_everywhere(held)]
        frontier = gc.get_referents(*inner)
    return False


def _leads_everywhere(held: object) -> bool:
    """Whether a value leads to whole modules, so that following it would say nothing."""
    return isinstance(held, types.ModuleType | type | types.FrameType) or (
        isinstance(held, dict) and "__builtins__" in held
    )


def _users_frames() -> Iterator[types.FrameType]:
    """The running frames of the user's own, on all threads."""
    others = [top for thread, top in sys._current_frames().items() if thread != threading.get_ident()]
    for top in (sys._getframe(1), *others):
        frame: types.FrameType | None = top
        while frame is not None:
            if not is_library(frame.f_code.co_filename):
                yield frame
            frame = frame.f_back


def held_by_user(value: object, levels: int = 5) -> bool:
    """Whether anybody other than JAX's caches holds a value: a variable, an object, or a container that these hold."""
    frontier: list[object] = [value]
    seen = {id(value), id(frontier), *(_parts(value) if isinstance(value, type) else ())}
    roots = _local_variables()
    for _ in range(levels):
        if any(id(held) in roots for held in frontier):
            return True
        found: list[object] = []
        asked = tuple(frontier)
        seen |= {id(found), id(asked)}  # what we hold ourselves
        holders = gc.get_referrers(*asked)
        seen.add(id(holders))
        for holder in holders:
            if id(holder) in seen:
                continue
            seen.add(id(holder))
            verdict = _is_user(holder)
            if verdict:
                return True
            if verdict is None:
                found.append(holder)
        if not found or len(found) > 64:
            return bool(found)
        frontier = found
    return True


def _parts(kind: type) -> set[int]:
    """The ids of what a class is made of, and which holds the class in turn."""
    own = vars(kind)
    return {id(kind.__mro__), id(own), *map(id, gc.get_referents(own)), *map(id, own.values())}


def _is_user(holder: object) -> bool | None:
    """Whether a holder is the user's own. None: ask who holds it in turn."""
    if isinstance(holder, types.FrameType):
        return False
    if isinstance(holder, dict) and "__name__" in holder and "__spec__" in holder:
        machinery = is_wrapping(str(holder.get("__file__") or "")) or str(holder["__name__"]).split(".")[0] in _CACHES
        return not machinery
    if isinstance(holder, _LRU) and is_machinery(unwrap_file(holder.__wrapped__)):
        return False
    kind = type(holder)
    if isinstance(holder, _CONTAINERS) or kind.__name__ in names.JIT_TYPES:
        return None
    if isinstance(holder, types.FunctionType):
        return None if is_machinery(holder.__code__.co_filename) else True
    package = _module_of(kind).split(".")[0]
    if package in _CACHES:
        return False
    return True if package == "builtins" else None  # an object of the user's: who holds that?


def _local_variables() -> set[int]:
    """The ids of all local variables in frames of the user's own, on all threads."""
    return {id(value) for frame in _users_frames() for value in frame.f_locals.values()}


_CACHES = ("jax", "jaxlib", "pytest_jitcache")
_LRU = type(functools.lru_cache(len))
_CONTAINERS = (tuple, list, dict, set, frozenset, types.CellType, functools.partial, types.MethodType)
