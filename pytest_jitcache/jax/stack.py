"""The frames of a call that missed: who called what, with which arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pytest_jitcache.jax.running import note_on
from pytest_jitcache.places import in_jax, is_library, is_machinery, is_wrapping

__tracebackhide__ = True

_CALL_FRAMES = frozenset(
    {"_trace_for_jit", "_infer_params", "_infer_params_impl", "_infer_params_internal", "infer_params", "cache_miss"}
)
_CALL_FILES = ("pjit.py", "partial_eval.py", "profiler.py", "util.py")  # also traceback_util.py and linear_util.py
_INSPECTIONS = frozenset({"jit_trace", "trace", "jit_lower", "lower", "jit_eval_shape", "eval_shape", "make_jaxpr_f"})
_BODIES = {
    "scan": ("f",), "map": ("f",), "while_loop": ("cond_fun", "body_fun"), "fori_loop": ("body_fun",),
    "cond": ("true_fun", "false_fun"), "_cond": ("true_fun", "false_fun"), "switch": ("branches",),
}  # fmt: skip
_OPTIONS = (
    "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline", "device",
    "backend", "use_resource_env", "compiler_options_kvs",
)  # fmt: skip


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
    frame: FrameType
    call: Call | None
    avals: tuple[tuple[Any, ...], dict[str, Any]] | None
    made: Call | None = None  # as JAX sees it, where `call` is the one that the user made of a library's jit
    flat: bool = False  # the abstract arguments are those of the primitive, not of the function


def called_by_user(frame: FrameType | None) -> bool:
    """Whether the jitted function that is traced in a frame was called by the user's own line, and not by JAX's."""
    while frame is not None and frame.f_code.co_filename.endswith(_CALL_FILES) and in_jax(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and not is_library(frame.f_code.co_filename)


def only_inspected(frame: FrameType | None) -> bool:
    """Whether a trace was asked for to be looked at (`.lower`, `.trace`, `.eval_shape`, `make_jaxpr`), not by a call."""
    while frame is not None and in_jax(frame.f_code.co_filename):
        if frame.f_code.co_name == "cache_miss":
            return False
        if frame.f_code.co_name in _INSPECTIONS:
            return True
        frame = frame.f_back
    return False


def fun_of(frame: FrameType) -> Any:
    fun: Any = frame.f_locals.get("fun")
    transformed = hasattr(fun, "transforms") and hasattr(fun, "f")  # linear_util.WrappedFun of JAX 0.8 and earlier
    return fun.f if transformed else fun


def start_of(frame: FrameType, fun: Any) -> Start:
    local = frame.f_locals
    debug = local.get("debug_info")
    traced_for = str(getattr(debug, "traced_for", "") or "jit")
    call = made = None
    for found, at in calls(frame):
        if found.fun is fun:
            call, made = users_own(found, at), found
            break
        if traced_for != "jit":
            break
    avals = None
    in_avals = local.get("in_avals")
    if call is None and in_avals is not None and hasattr(in_avals, "unflatten"):
        try:
            if not local.get("fun_takes_flat_tree_arg"):
                args, kwargs = in_avals.unflatten()
                avals = (tuple(args), dict(kwargs))
        except Exception:
            avals = None
    return Start(fun, traced_for, frame, call, avals, made)


def users_own(call: Call, frame: FrameType) -> Call:
    """The call as the user made it, where a library has jitted a function of its own around the user's."""
    return (_equinox_call(frame) if "equinox" in file_of(call.fun) else None) or call


def eager_bodies(frame: FrameType) -> tuple[str, list[Any]]:
    """The control-flow function whose primitive is being jitted or compiled below a frame, and the bodies it was given."""
    entry: FrameType | None = None
    at = frame.f_back
    while at is not None and is_machinery(at.f_code.co_filename):
        if at.f_code.co_name in _BODIES and "control_flow" in at.f_code.co_filename:
            entry = at if any(name in at.f_locals for name in _BODIES[at.f_code.co_name]) else entry
        at = at.f_back
    if entry is None:
        return "", []
    bodies: list[Any] = []
    for name in _BODIES[entry.f_code.co_name]:
        value = entry.f_locals.get(name)
        bodies += value if isinstance(value, list | tuple) else [value]
    return entry.f_code.co_name.lstrip("_"), [body for body in bodies if callable(body)]


def starts_of_bodies(frame: FrameType) -> list[Start]:
    """A start for each body of an eager control-flow function, with the primitive's flat arguments."""
    flat = tuple(frame.f_locals.get("in_type") or ())
    kind, bodies = eager_bodies(frame)
    return [Start(body, kind, frame, None, (flat, {}), flat=True) for body in bodies]


def calls(frame: FrameType | None) -> Iterator[tuple[Call, FrameType]]:
    """The calls that missed, from the innermost out, as far as JAX's (or a wrapper's) own frames reach."""
    limit = 60
    while frame is not None and limit:
        code = frame.f_code
        if in_jax(code.co_filename):
            if code.co_name in _CALL_FRAMES:
                local = frame.f_locals
                if "fun" in local and "args" in local and "kwargs" in local:
                    yield _call_of(local), frame
        elif limit < 60 and not is_machinery(code.co_filename):
            return
        frame = frame.f_back
        limit -= 1


def _call_of(local: Mapping[str, Any]) -> Call:
    info = local.get("ji") or local.get("jit_info")
    options = tuple((name, repr(value)) for name in _OPTIONS if not _is_default(value := getattr(info, name, None)))
    return Call(
        local["fun"],
        local["args"],
        local["kwargs"],
        tuple(getattr(info, "static_argnums", ()) or ()),
        tuple(getattr(info, "static_argnames", ()) or ()),
        options,
        signature=getattr(info, "fun_signature", None),
    )


def _is_default(option: Any) -> bool:
    return not option or getattr(option, "name", "") == "AUTO"


def file_of(fun: Any) -> str:
    return str(getattr(getattr(fun, "__code__", None), "co_filename", ""))


def _equinox_call(frame: FrameType | None) -> Call | None:
    """`eqx.filter_jit` jits a function of its own; its `_call` frame knows the user's."""
    limit = 20
    while frame is not None and limit:
        if frame.f_code.co_name == "_call" and "equinox" in frame.f_code.co_filename:
            local = frame.f_locals
            wrapper = local["jit_wrapper" if "jit_wrapper" in local else "self"]  # "self" up to equinox 0.11
            return Call(
                wrapper.__wrapped__, local["args"], local["kwargs"], arrays_only=True,
                signature=getattr(wrapper, "_signature", None),
            )  # fmt: skip
        frame = frame.f_back
        limit -= 1
    return None


def traced_in_same_call(frame: FrameType, body: object) -> bool:
    """Whether the user's one call that leads to a trace has traced the same body before.

    `scan` and `while_loop` do so to promote weak types, flax to learn what a lifted `scan` leaves alone.
    """
    entry = frame
    above = frame.f_back
    while above is not None and is_machinery(above.f_code.co_filename):
        if is_wrapping(above.f_code.co_filename):
            entry = above
        above = above.f_back
    traced = note_on(entry).bodies
    seen = body in traced
    traced.add(body)
    return seen


def bare(name: str) -> str:
    found = re.fullmatch(r"\w+\((.*)\)", name)
    return found.group(1) if found else name


def above(frame: FrameType) -> Iterator[FrameType]:
    """The frames of JAX above one."""
    at = frame.f_back
    while at is not None:
        if in_jax(at.f_code.co_filename):
            yield at
        at = at.f_back
