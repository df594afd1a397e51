"""The signature of a call: its arguments bound to parameters, as a key to count by and as text to read.

The key holds what a retrace may depend on by right: pytree structure, shapes, dtypes and static values. What JAX's own
cache looks at beyond that (weak types, how an argument was passed, shardings) is kept beside the key, so that it can be
named as the cause of a retrace. Nothing here keeps an argument alive.
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_jitcache.places import Body, show

OMITTED = "omitted"


# --- static values --------------------------------------------------------------------------------------------------


def reference(value: object, instead: object = None) -> Callable[[], Any]:
    """A weak reference: while it is kept the same one for the same object, and so another one for another object.

    Args:
        value: the object.
        instead: what to give in its place if it can't be referred to weakly.
    """
    try:
        return weakref.ref(value)
    except TypeError:
        return _nothing if instead is None else lambda: instead


def _nothing() -> None:
    return None


class ByValue:
    """A static value that compares with `==`, held weakly where that is possible (not so for numbers, dates, ranges)."""

    __slots__ = ("hash", "ref", "text", "type")

    def __init__(self, value: object) -> None:
        self.type = kind_token(type(value))
        self.hash = hash(value)
        self.text = safe_repr(value)
        self.ref = reference(value, value)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByValue) or self.hash != other.hash or self.type != other.type:
            return False
        mine, theirs = self.ref(), other.ref()
        if mine is None or theirs is None:
            return True
        return bool(mine == theirs)


class ByIdentity:
    """A static value that equals nothing but itself.

    Made anew it is the same signature, while the earlier one lives on beside it, it is another: `slot` says which, and
    is given by `identity.Slots` at the time of the trace.
    """

    __slots__ = ("captured", "id", "place", "ref", "slot", "text", "type")

    def __init__(self, value: object, place: object, text: str) -> None:
        self.type = kind_token(type(value))
        self.place = place
        self.text = text
        self.id = id(value)
        self.slot = 0
        self.captured: Any = None  # what it held at the time of the trace
        self.ref = reference(value)

    @property
    def is_class(self) -> bool:
        """Whether this stands for a class."""
        return isinstance(self.type, type) and issubclass(self.type, type)

    def __hash__(self) -> int:
        return hash((self.type, self.place))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ByIdentity)
            and self.type == other.type
            and self.slot == other.slot
            and self.place == other.place
        )


_PLAIN = (int, float, bool, complex, str, bytes, type(None), type(...), types.ModuleType)

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not one of those that are part of the interpreter, such as NoneType


def kind_token(kind: type) -> type | ByIdentity:
    """A class, or a stand-in for one that its module does not hold: it is made anew with each run of a function."""
    module = getattr(kind, "__module__", "")  # some types of old jaxlibs have none
    found: Any = sys.modules.get(module)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is kind or not kind.__flags__ & _HEAP_TYPE:
        return kind
    return ByIdentity(kind, (module, kind.__qualname__), kind.__name__)


def kind_name(kind: type | ByIdentity) -> str:
    """The name of what `kind_token` gives."""
    return kind.text if isinstance(kind, ByIdentity) else kind.__name__


def static_token(value: object, depth: int = 0) -> object:
    """A stand-in for a static value that compares as the signature does: by type and `==`, or by kind where `==` means `is`."""
    if isinstance(value, numbers.Number) and _unequal_to_itself(value):
        return ("nan", type(value))
    if isinstance(value, type):
        return kind_token(value)
    kind = kind_token(type(value))
    if isinstance(value, enum.Enum):
        return (kind, value.name)
    if isinstance(value, _PLAIN):
        return (kind, value)
    if hasattr(value, "dtype") and hasattr(value, "shape") and not _hashable(value):  # JAX refuses it as an argument
        return ("array", kind, str(value.dtype), tuple(value.shape))
    if depth < 8:
        if isinstance(value, tuple | list):
            return (kind, tuple(static_token(v, depth + 1) for v in value))
        if isinstance(value, frozenset | set):
            return (kind, frozenset(static_token(v, depth + 1) for v in value))
        if isinstance(value, Mapping):
            return (kind, tuple((static_token(k, depth + 1), static_token(v, depth + 1)) for k, v in value.items()))
        if isinstance(value, types.FunctionType):
            return ByIdentity(value, Body.of(value.__code__), _function_text(value))
        if isinstance(value, functools.partial):
            bound = (value.func, value.args, tuple(sorted(value.keywords.items())))
            return ByIdentity(value, static_token(bound, depth + 1), safe_repr(value))
        if isinstance(value, types.MethodType):
            return (types.MethodType, static_token(value.__func__, depth + 1), static_token(value.__self__, depth + 1))
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields and type(value).__eq__ is not object.__eq__:
            parts = tuple(
                (name, static_token(getattr(value, name, None), depth + 1)) for name in fields if fields[name].compare
            )
            return (kind, parts)
    if type(value).__eq__ is object.__eq__:
        return ByIdentity(value, getattr(value, "__code__", None) or _place_of_callable(value), safe_repr(value))
    try:
        return ByValue(value)
    except Exception:  # unhashable: JAX will refuse it, or it is metadata that compares by `==` alone
        return ("unhashable", kind, safe_repr(value))


def _unequal_to_itself(value: object) -> bool:
    try:
        return bool(value != value)  # noqa: PLR0124 - NaN, of whatever type
    except Exception:
        return False


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True


def _place_of_callable(value: object) -> object:
    """What tells two long-lived callables of one type apart, such as `jnp.sin` and `jnp.cos`."""
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, types.FunctionType):
        return Body.of(wrapped.__code__)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if callable(value) and isinstance(name, str) else None


def identities(token: object) -> Iterator[ByIdentity]:
    """All the parts of a static token that compare by identity, what others depend on first."""
    if isinstance(token, ByIdentity | ByValue):
        yield from identities(token.type)
    if isinstance(token, ByIdentity):
        yield token
        if isinstance(token.place, tuple):
            yield from identities(token.place)
    elif isinstance(token, tuple | frozenset):
        for part in token:
            yield from identities(part)


def has_nan(token: object) -> bool:
    """Whether a NaN is somewhere in a static token."""
    if isinstance(token, ByIdentity):
        return has_nan(token.place)
    if isinstance(token, tuple | frozenset):
        return (len(token) == 2 and isinstance(token, tuple) and token[0] == "nan") or any(
            has_nan(part) for part in token
        )
    return False


def token_text(token: object, limit: int = 60) -> str:
    """A static token as text."""
    if isinstance(token, ByIdentity | ByValue):
        text = token.text
    elif isinstance(token, type):
        text = f"class {token.__name__}"
    elif isinstance(token, tuple) and len(token) == 2 and isinstance(token[0], type | ByIdentity):
        kind, value = token
        if kind in (tuple, list) and isinstance(value, tuple):
            inner = ", ".join(token_text(part) for part in value)
            text = f"({inner})" if kind is tuple else f"[{inner}]"
        elif isinstance(value, tuple):
            text = f"{kind_name(kind)}(…)"
        elif isinstance(kind, ByIdentity) or issubclass(kind, enum.Enum):
            text = f"{kind_name(kind)}.{value}"
        else:
            text = safe_repr(value)
    elif isinstance(token, tuple) and token and token[0] == "nan":
        text = "nan"
    else:
        text = safe_repr(token)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_repr(value: object, limit: int = 60) -> str:
    """`repr`, never raising, on one line, cut to `limit`."""
    try:
        text = " ".join(repr(value).split())
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _function_text(value: types.FunctionType) -> str:
    return f"<function {value.__qualname__} at {show(value.__code__.co_filename)}:{value.__code__.co_firstlineno}>"


def static_text(value: object) -> str:
    return _function_text(value) if isinstance(value, types.FunctionType) else safe_repr(value)


# --- leaves and structure -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array, scalar or static value of an argument."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    weak: bool = False
    sharding: str = ""
    committed: bool = False
    form: str = ""  # "array", "numpy", "scalar", "tracer" or "static"
    token: object = None
    text: str = ""

    @property
    def key(self) -> object:
        return self.token if self.form == "static" else (self.shape, self.dtype)

    def __str__(self) -> str:
        if self.form == "static":
            return self.text
        return f"{'~' if self.weak else ''}{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Node:
    """An inner node of a pytree: its type, its metadata, and its children with the path entry that leads to each."""

    type: Any  # as `kind_token` gives it
    meta: object
    entries: tuple[str, ...]
    children: tuple[Node | Leaf, ...]

    @property
    def key(self) -> object:
        return (self.type, self.meta, tuple(child.key for child in self.children))

    def __str__(self) -> str:
        parts = [str(child) for child in self.children]
        if self.type is type(None):
            return "None"
        if self.type is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if self.type is list:
            return f"[{', '.join(parts)}]"
        if self.type is dict:
            return "{" + ", ".join(f"{e[1:-1]}: {p}" for e, p in zip(self.entries, parts, strict=False)) + "}"
        name = kind_name(self.type)
        inner = ", ".join(e.strip(".[]") + "=" + p for e, p in zip(self.entries, parts, strict=False))
        return f"{name}({inner})"


def leaves_of(tree: Node | Leaf, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """All leaves under a node with the path a user would write, such as `['dense']['kernel']`."""
    if isinstance(tree, Leaf):
        yield path, tree
    else:
        for entry, child in zip(tree.entries, tree.children, strict=True):
            yield from leaves_of(child, path + entry)


@dataclass(frozen=True, slots=True)
class Argument:
    """What a parameter received: the tree, and how it was passed ("position", "keyword" or "omitted")."""

    name: str
    tree: Node | Leaf
    passed: str
    equals_default: bool = False


@dataclass(frozen=True)
class Signature:
    """The abstract signature of one call.

    Attributes:
        arguments: one for each parameter, in their order.
        known: whether the arguments could be seen at all.
        key: equal for equal signatures, hashable.
        default_key: the same, where a default that is spelled out counts as omitted.
    """

    arguments: tuple[Argument, ...]
    known: bool = True
    key: object = field(init=False, repr=False, compare=False)
    default_key: object = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple((a.name, self._key(a, False)) for a in self.arguments))
        object.__setattr__(self, "default_key", tuple((a.name, self._key(a, True)) for a in self.arguments))

    @staticmethod
    def _key(argument: Argument, fold_defaults: bool) -> object:
        if argument.passed == OMITTED or (fold_defaults and argument.equals_default):
            return OMITTED
        return argument.tree.key

    def __getitem__(self, name: str) -> Argument:
        return next(a for a in self.arguments if a.name == name)

    def __str__(self) -> str:
        return self.render()

    def render(self, limit: int = 100, keep: Sequence[str] = ()) -> str:
        """The arguments as `name: f32[8,128]`. Long ones are cut, but those named in `keep` stay."""
        shown = []
        for argument in self.arguments:
            if argument.passed == OMITTED:
                continue
            text = str(argument.tree)
            if len(text) > limit:
                text = _abridge(argument, limit, keep)
            shown.append(f"{argument.name}: {text}")
        return ", ".join(shown) or "(no arguments)"


def _abridge(argument: Argument, limit: int, keep: Sequence[str]) -> str:
    leaves = list(leaves_of(argument.tree))
    kept = [(p, leaf) for p, leaf in leaves if argument.name + p in keep] or leaves[:2]
    kept = kept[:3]
    inner = ", ".join(f"{p}: {str(leaf) if len(str(leaf)) <= limit else str(leaf)[:limit] + '…'}" for p, leaf in kept)
    kind = kind_name(argument.tree.type) if isinstance(argument.tree, Node) else ""
    more = len(leaves) - len(kept)
    return f"{kind} of {len(leaves)} leaves ({inner}{f', … {more} more' if more else ''})" if kind else inner[:limit]


# --- capture --------------------------------------------------------------------------------------------------------

_SHORT = {"float": "f", "uint": "u", "int": "i", "complex": "c", "bfloat": "bf"}


@functools.lru_cache(maxsize=256)
def short_dtype(name: str) -> str:
    """`float32` as JAX abbreviates it: `f32`."""
    for long, short in _SHORT.items():
        if name.startswith(long) and name[len(long) :].isdigit():
            return short + name[len(long) :]
    return name


@functools.lru_cache(maxsize=256)
def _sharding_text(sharding: Any) -> str:
    spec, mesh = getattr(sharding, "spec", None), getattr(sharding, "mesh", None)
    if spec is not None and mesh is not None:
        axes = ", ".join(f"{name}:{size}" for name, size in dict(mesh.shape).items())
        parts = ", ".join(repr(part) for part in spec)
        text = f"NamedSharding(P({parts}) on mesh {axes or 'empty'})"
    else:
        text = type(sharding).__name__
    devices = sorted(sharding.device_set, key=lambda d: int(d.id))
    names = ", ".join(f"{d.platform}:{d.id}" for d in devices[:8]) + (", …" if len(devices) > 8 else "")
    return names if len(devices) == 1 and spec is None else f"{text} on {names}"


class Capture:
    """Turns arguments into a `Signature` with public functions of JAX only."""

    def __init__(self) -> None:
        import jax
        import numpy

        self._jax = jax
        self._numpy = numpy
        self._typeof: Callable[[Any], Any] = getattr(jax, "typeof", None) or jax.api_util.shaped_abstractify
        self._tree = jax.tree_util

    def leaf(self, value: Any, arrays_only: bool = False) -> Leaf:
        """An abstract leaf. With `arrays_only` what is no array is static, as in `eqx.filter_jit`."""
        jax = self._jax
        if isinstance(value, Leaf):
            return value
        is_array = isinstance(value, jax.Array | self._numpy.ndarray | self._numpy.generic)
        if arrays_only and not is_array and not hasattr(value, "dtype"):
            return self.static(value)
        tracer = isinstance(value, jax.core.Tracer)
        try:
            aval = (
                value
                if not is_array and hasattr(value, "weak_type") and hasattr(value, "dtype")
                else self._typeof(value)
            )
            shape, dtype, weak = (
                tuple(aval.shape),
                short_dtype(str(aval.dtype)),
                bool(getattr(aval, "weak_type", False)),
            )
        except Exception:  # not a JAX type: JAX says so itself
            return Leaf(form="other", dtype=type(value).__name__, text=safe_repr(value))
        shape = tuple(n if isinstance(n, int) else str(n) for n in shape)
        if tracer:
            return Leaf(shape, dtype, weak, form="tracer")
        if not isinstance(value, jax.Array):
            form = "numpy" if is_array else "scalar" if isinstance(value, int | float | complex) else "aval"
            return Leaf(shape, dtype, weak, form=form)
        try:
            sharding, committed = _sharding_text(value.sharding), bool(value.committed)
        except Exception:
            sharding, committed = "", False
        return Leaf(shape, dtype, weak, sharding, committed, "array")

    def static(self, value: Any) -> Leaf:
        """A static argument."""
        return Leaf(form="static", token=static_token(value), text=static_text(value))

    def tree(self, value: Any, arrays_only: bool = False) -> Node | Leaf:
        """A pytree of abstract leaves."""
        if isinstance(value, self._jax.Array | self._numpy.ndarray | int | float | complex | Leaf):
            return self.leaf(value, arrays_only)
        leaves, treedef = self._tree.tree_flatten_with_path(value, is_leaf=lambda x: isinstance(x, Leaf))
        walk = iter(leaves)
        return self._node(treedef, walk, 0, arrays_only)[0]

    def _node(self, treedef: Any, walk: Iterator[Any], depth: int, arrays_only: bool) -> tuple[Node | Leaf, Any]:
        data = treedef.node_data()
        if data is None:
            if treedef.num_leaves == 0:
                return Node(type(None), None, (), ()), None
            path, value = next(walk)
            return self.leaf(value, arrays_only), path
        kind, meta = data
        entries: list[str] = []
        children: list[Node | Leaf] = []
        some_path = None
        for index, child in enumerate(treedef.children()):
            built, path = self._node(child, walk, depth + 1, arrays_only)
            children.append(built)
            if path is not None and len(path) > depth:
                entries.append(_entry(path[depth]))
                some_path = path
            elif kind is dict or (isinstance(kind, type) and issubclass(kind, dict)):
                entries.append(f"[{meta[index]!r}]" if isinstance(meta, list | tuple) else f"[{index}]")
            elif hasattr(kind, "_fields"):
                entries.append(f".{kind._fields[index]}")
            else:
                entries.append(f"[{index}]")
        plain = kind in (tuple, list, type(None)) or (isinstance(kind, type) and hasattr(kind, "_fields"))
        token = None if plain else static_token(meta)
        return Node(kind_token(kind), token, tuple(entries), tuple(children)), some_path

    def call(
        self,
        signature: inspect.Signature | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        arrays_only: bool = False,
    ) -> Signature:
        """The signature of `function(*args, **kwargs)`."""
        static_nums = {n % len(args) if n < 0 and args else n for n in static_argnums}
        arguments: list[Argument] = []

        def add(name: str, value: Any, passed: str, static: bool, parameter: inspect.Parameter | None = None) -> None:
            tree = self.static(value) if static else self.tree(value, arrays_only)
            default = parameter.default if parameter is not None else inspect.Parameter.empty
            same = default is not inspect.Parameter.empty and passed != OMITTED and _equals_default(value, default)
            arguments.append(Argument(name, tree, passed, same))

        parameters = list(signature.parameters.values()) if signature is not None else []
        left = dict(kwargs)
        position = 0
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                first = position
                while position < len(args):
                    add(f"{parameter.name}[{position - first}]", args[position], "position", position in static_nums)
                    position += 1
            elif parameter.kind is parameter.VAR_KEYWORD:
                continue
            elif position < len(args) and parameter.kind is not parameter.KEYWORD_ONLY:
                add(parameter.name, args[position], "position", position in static_nums, parameter)
                position += 1
            elif parameter.name in left:
                add(parameter.name, left.pop(parameter.name), "keyword", parameter.name in static_argnames, parameter)
            elif parameter.default is not parameter.empty:
                arguments.append(
                    Argument(
                        parameter.name, Leaf(form="static", token=OMITTED, text=safe_repr(parameter.default)), OMITTED
                    )
                )
        for index in range(position, len(args)):
            add(f"args[{index}]", args[index], "position", index in static_nums)
        for name in sorted(left):
            add(name, left[name], "keyword", name in static_argnames)
        return Signature(tuple(arguments), known=signature is not None)


def _entry(key: Any) -> str:
    return str(key)


def _equals_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return (
            type(value) is type(default)
            and isinstance(value, (*_PLAIN, enum.Enum, type, tuple))
            and bool(value == default)
        )
    except Exception:
        return False
