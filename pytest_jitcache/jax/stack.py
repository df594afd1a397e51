"""The stack of a notification, read once, and the walks over it: who was called, by whom, with which arguments."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from pytest_jitcache.jax import names
from pytest_jitcache.jax.running import note_on
from pytest_jitcache.places import Whose, whose

__tracebackhide__ = True

# Which locals of a control-flow function hold the bodies that it was given: these are its parameters.
_BODIES = {
    "scan": ("f",), "map": ("f",), "while_loop": ("cond_fun", "body_fun"), "fori_loop": ("body_fun",),
    "cond": ("true_fun", "false_fun"), "_cond": ("true_fun", "false_fun"), "switch": ("branches",),
}  # fmt: skip
# Parameters of `jax.jit`.
_OPTIONS = (
    "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline", "device",
    "backend", "use_resource_env", "compiler_options_kvs",
)  # fmt: skip
_FAR = 60  # frames of JAX between a call and its trace, at most
_EQUINOX = "equinox"


@dataclass
class Call:
    """What the frames of a cache miss know about the call that missed."""

    fun: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    arrays_only: bool = False  # what is no array is static, as in eqx.filter_jit
    signature: inspect.Signature | None = None


@dataclass
class Start:
    """One run of a body under a trace begins. Lives for the time of the notification only."""

    fun: Any
    traced_for: str
    stack: Stack
    call: Call | None
    avals: tuple[tuple[Any, ...], dict[str, Any]] | None
    made: Call | None = None  # as JAX sees it, where `call` is the one that the user made of a library's jit
    flat: bool = False  # the abstract arguments are those of the primitive, not of the function


class Stack:
    """The frames of a thread from one outwards, each with whose it is. Must not outlive the notification.

    Attributes:
        frames: pairs of frame and owner, from the inside out.
    """

    __slots__ = ("frames",)

    def __init__(self, frame: FrameType | None) -> None:
        frames = []
        while frame is not None:
            frames.append((frame, whose(frame.f_code.co_filename)))
            frame = frame.f_back
        self.frames: list[tuple[FrameType, Whose]] = frames

    @property
    def top(self) -> FrameType:
        """The innermost frame."""
        return self.frames[0][0]

    def __iter__(self) -> Iterator[FrameType]:
        return (frame for frame, _ in self.frames)

    def above(self, owner: Whose) -> Iterator[FrameType]:
        """The frames above the innermost one, up to the first whose owner is nearer to the user than `owner`."""
        for frame, whose_it_is in self.frames[1:]:
            if whose_it_is > owner:
                return
            yield frame

    def in_jax(self) -> list[FrameType]:
        """All frames of JAX above the innermost one."""
        return [frame for frame, owner in self.frames[1:] if owner is Whose.JAX]

    def running(self, codes: frozenset[CodeType]) -> frozenset[CodeType]:
        """Which of some code objects run here."""
        return codes.intersection(frame.f_code for frame in self)

    def frame_of(self, code: CodeType | None) -> FrameType | None:
        """The innermost frame that runs a code object."""
        return next((frame for frame in self if frame.f_code is code), None)

    def call_site(self) -> FrameType | None:
        """The first frame above the innermost that is the user's own, or else an installed library's."""
        library = None
        for frame, owner in self.frames[1:]:
            if owner is Whose.USER:
                return frame
            if library is None and owner is Whose.LIBRARY:
                library = frame
        return library

    # -- what kind of call it is

    def called_by_user(self) -> bool:
        """Whether the jitted function that is traced here was called by the user's own line, and not by JAX's."""
        for frame, owner in self.frames[1:]:
            if owner is not Whose.JAX or not frame.f_code.co_filename.endswith(names.CALL_FILES.texts):
                return owner is Whose.USER
        return False

    def only_inspected(self) -> bool:
        """Whether a trace was asked for to be looked at (`.lower`, `.trace`, `.eval_shape`), not by a call."""
        for frame in self.above(Whose.JAX):
            if frame.f_code.co_name in names.CALL_MISSED:
                return False
            if frame.f_code.co_name in names.INSPECTIONS:
                return True
        return False

    def is_transpose(self) -> bool:
        """Whether what is compiled here is a backward pass."""
        return any(text in frame.f_code.co_name for frame in self.above(Whose.CARRIER) for text in names.TRANSPOSE)

    def caller(self) -> FrameType | None:
        """The first frame that is no machinery's."""
        return next((frame for frame, owner in self.frames if owner > Whose.CARRIER), None)

    def traced_in_same_call(self, body: object) -> bool:
        """Whether the user's one call that leads to a trace has traced the same body before.

        `scan` and `while_loop` do so to promote weak types, flax to learn what a lifted `scan` leaves alone.
        """
        entry = self.top
        for frame in self.above(Whose.CARRIER):
            if whose(frame.f_code.co_filename) <= Whose.WRAPPER:
                entry = frame
        traced = note_on(entry).bodies
        seen = body in traced
        traced.add(body)
        return seen

    # -- with which arguments

    def calls(self) -> Iterator[tuple[Call, int]]:
        """The calls that missed, from the innermost out, as far as machinery reaches; each with the number of its frame."""
        for number, (frame, owner) in enumerate(self.frames[:_FAR]):
            if owner is Whose.JAX:
                if frame.f_code.co_name in names.CALLS:
                    call = _call_of(frame.f_locals)
                    if call is not None:
                        yield call, number
            elif number and owner > Whose.CARRIER:
                return

    def users_call(self) -> Call | None:
        """The innermost call that missed, as the user made it."""
        return next((self.users_own(call, number) for call, number in self.calls()), None)

    def users_own(self, call: Call, number: int) -> Call:
        """The call as the user made it, where a library has jitted a function of its own around the user's."""
        return (self._equinox_call(number) if _EQUINOX in file_of(call.fun) else None) or call

    def _equinox_call(self, number: int) -> Call | None:
        """`eqx.filter_jit` jits a function of its own; one of its frames knows the user's."""
        near = (frame for frame, owner in self.frames[number : number + 20] if owner is Whose.WRAPPER)
        return next(filter(None, map(_equinox_call, near)), None)

    def _equinox_mapped_call(self, fun: Any) -> Call | None:
        """The same of `eqx.filter_pmap`; `fun` is a function of equinox's or JAX's around the user's."""
        if whose(file_of(fun)) > Whose.WRAPPER:
            return None
        files = names.EQUINOX_PMAP.texts
        near = (frame for frame in self.above(Whose.CARRIER) if frame.f_code.co_filename.endswith(files))
        return next(filter(None, map(_equinox_call, near)), None)

    def _mapped_call(self) -> Call | None:
        """The call of the pmap whose function is traced, where it has static arguments."""
        for frame in self.above(Whose.CARRIER):
            if frame.f_code.co_name in names.PMAP_CALL and whose(frame.f_code.co_filename) is Whose.JAX:
                local = frame.f_locals
                known = {**_parts_of(names.PMAP_PARTS.read(local)), **local}
                statics, mapped = names.PMAP_STATICS.read(known), names.PMAP_FUN.read(known)
                if statics and mapped is not None:
                    users = mapped if callable(mapped) else names.TRANSFORMED.of(mapped)
                    return Call(users, local["args"], local["kwargs"], tuple(statics), signature=_signature_of(users))
        return None

    def start(self, fun: Any) -> Start:
        """The trace of `fun` that begins in the innermost frame."""
        local = self.top.f_locals
        debug = names.DEBUG_INFO.read(local)
        traced_for = str(names.TRACED_FOR.of(debug, "") or "jit")
        call = made = None
        for found, number in self.calls():
            if found.fun is fun:
                call, made = self.users_own(found, number), found
                break
            if traced_for != "jit":
                break
        avals = None
        unflatten = names.UNFLATTEN.of(names.AVALS.read(local))
        if call is None and unflatten is not None and not names.FLAT.read(local):
            try:
                args, kwargs = unflatten()
                avals = (tuple(args), dict(kwargs))
            except Exception:
                avals = None
        call = self._mapped_call() or call or self._equinox_mapped_call(fun)
        return Start(fun, traced_for, self, call, avals, made)

    # -- bodies of eager loops

    def eager_bodies(self) -> tuple[str, list[Any]]:
        """The control-flow function whose primitive is jitted or compiled here, and the bodies it was given."""
        entry: FrameType | None = None
        for frame in self.above(Whose.CARRIER):
            wanted = _BODIES.get(frame.f_code.co_name, ())
            if wanted and any(text in frame.f_code.co_filename for text in names.LOOPS):
                entry = frame if any(name in frame.f_locals for name in wanted) else entry
        if entry is None:
            return "", []
        bodies: list[Any] = []
        for name in _BODIES[entry.f_code.co_name]:
            value = entry.f_locals.get(name)
            bodies += value if isinstance(value, list | tuple) else [value]
        return entry.f_code.co_name.lstrip("_"), [body for body in bodies if callable(body)]

    def starts_of_bodies(self) -> list[Start]:
        """A start for each body of an eager control-flow function, with the primitive's flat arguments."""
        flat = tuple(names.FLAT_AVALS.read(self.top.f_locals) or ())
        kind, bodies = self.eager_bodies()
        return [Start(body, kind, self, None, (flat, {}), flat=True) for body in bodies]


def _equinox_call(frame: FrameType) -> Call | None:
    """The user's call of a filter_jit or a filter_pmap, if this is equinox's frame of one."""
    if frame.f_code.co_name not in names.EQUINOX_CALL or _EQUINOX not in frame.f_code.co_filename:
        return None
    local = frame.f_locals
    wrapper = names.EQUINOX_WRAPPER.read(local)
    if not callable(getattr(wrapper, "__wrapped__", None)):
        return None
    return Call(
        wrapper.__wrapped__, names.ARGS.read(local, ()), names.KWARGS.read(local, {}), arrays_only=True,
        signature=names.EQUINOX_SIGNATURE.of(wrapper),
    )  # fmt: skip


def _parts_of(function: Any) -> dict[str, Any]:
    """What a function closes over, or what a partial binds, by name."""
    if isinstance(function, functools.partial):
        signature = _signature_of(function.func)
        return dict(signature.bind_partial(*function.args).arguments) if signature is not None else {}
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except TypeError:
        return {}


def _signature_of(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def fun_of(frame: FrameType) -> Any:
    """The function that is traced in a frame."""
    fun: Any = names.FUN.read(frame.f_locals)
    transformed = names.TRANSFORMS.of(fun) is not None  # linear_util.WrappedFun of JAX 0.8 and earlier
    return names.TRANSFORMED.of(fun) if transformed else fun


def file_of(fun: Any) -> str:
    return str(getattr(getattr(fun, "__code__", None), "co_filename", ""))


def bare(name: str) -> str:
    """The name of a function without that of the transform that events put around it, as in `jit(f)`."""
    found = re.fullmatch(r"\w+\((.*)\)", name)
    return found.group(1) if found else name


def _call_of(local: Mapping[str, Any]) -> Call | None:
    fun, args, kwargs = (name.read(local, _call_of) for name in (names.FUN, names.ARGS, names.KWARGS))
    if _call_of in (fun, args, kwargs):
        return None
    info = names.JIT_INFO.read(local)
    options = tuple((name, repr(value)) for name in _OPTIONS if not _is_default(value := getattr(info, name, None)))
    return Call(
        fun,
        args,
        kwargs,
        tuple(names.STATIC_ARGNUMS.of(info, ()) or ()),
        tuple(names.STATIC_ARGNAMES.of(info, ()) or ()),
        options,
        signature=names.SIGNATURE.of(info),
    )


def _is_default(option: Any) -> bool:
    return not option or getattr(option, "name", "") in names.NO_OPTION
