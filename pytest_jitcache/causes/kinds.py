"""A function that is made anew: what makes it, by the kind of thing that is jitted, and how it is made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_jitcache.recorder import Trace


@dataclass(frozen=True)
class Kind:
    """What may be under a jit, a row of the table.

    Attributes:
        why: what makes a new object of it. May use `{name}` (the function), `{outer}` (the transform), `{place}`.
        fix: how it is made once; may use `{keep}` too.
        code: of the linter's rule that finds it in the source.
    """

    why: str
    fix: str
    code: str


KEEP = "and keep the jitted function: at module level, in a cached factory, or on the object that uses it"

_NNX = Kind(
    "`nnx.jit({name})` makes a new function object each time it is evaluated, even for a module-level function.",
    "Apply `nnx.jit` once, as a decorator or at module level, {keep}.",
    "JIT105",
)
_TRANSFORM = Kind(
    "`{outer}({name})` makes a new function object each time it is evaluated.",
    "Build `jit({outer}({name}))` once, at module level, {keep}.",
    "JIT105",
)

KINDS: dict[str, Kind] = {
    "partial": Kind(
        "`functools.partial({name}, ...)` makes a new object each time it is evaluated.",
        "Build the jitted partial once {keep}; or jit `{name}` itself and pass the bound values as arguments.",
        "JIT102",
    ),
    "bound method": Kind(
        "Looking up the method `{name}` on an instance makes a new bound method each time.",
        "Jit the method once in `__init__` and keep it on the instance, or jit a function that takes the instance's data as arguments.",
        "JIT104",
    ),
    "lambda": Kind(
        "The lambda at {place} is made anew each time that line runs.",
        "Jit a function defined at module level (pass what the lambda captures as arguments), or build the jitted lambda once and keep it.",
        "JIT101",
    ),
    "nested function": Kind(
        "`{name}` is defined inside another function, so each call of that one makes a new `{name}`.",
        "Move `{name}` to module level and pass what it captures as arguments, or make the jitted function once and keep it.",
        "JIT103",
    ),
    "callable object": Kind(
        "A new instance of the callable class is jitted each time.",
        "Make the instance once {keep}.",
        "JIT105",
    ),
    "JitFn": _NNX,
    "JitWrapped": _NNX,
    "pmap": Kind(
        "`pmap({name})` makes a new function object each time it is evaluated.",
        "Build `pmap({name})` once {keep}.",
        "JIT105",
    ),
    "wrapper": Kind(
        "The wrapper around `{name}` is a new function object each time it is made.",
        "Wrap `{name}` and jit the result once, at module level, {keep}.",
        "JIT105",
    ),
    "function": Kind(
        "`{name}` is another function object than before, though no function makes it: its module or code was run again.",
        "Load `{name}` once, and keep it.",
        "JIT103",
    ),
}

# What a transform of JAX's is called in `Trace.kinds`.
TRANSFORMS = {
    "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "jacobian", "hessian", "linearize", "vjp", "jvp", "checkpoint",
    "named_call", "pmap", "shard_map", "checkify", "vectorize", "custom_jvp", "custom_vjp",
}  # fmt: skip


def outermost(trace: Trace) -> str:
    """The kind of what is right under the jit."""
    kinds = [kind for kind in trace.kinds if kind != "jit"]
    if kinds[:2] == ["jacfwd", "jacrev"]:  # what jax.hessian is made of
        return "hessian"
    return kinds[0].lstrip("_") if kinds else "function"


def kind_of(trace: Trace) -> Kind:
    """The row for what a traced function is."""
    outer = outermost(trace)
    written = outer in KINDS and outer not in ("wrapper", "function")
    if not written and any("cached_shard_map" in kind for kind in trace.kinds):  # what JAX makes a pmap of
        return KINDS["pmap"]
    return KINDS.get(outer, _TRANSFORM)


def made_anew(trace: Trace) -> tuple[str, str]:
    """Why the function of a trace was another object than before, and what ends it."""
    kind = kind_of(trace)
    words = {"name": trace.name, "outer": outermost(trace), "place": trace.place, "keep": KEEP}
    return kind.why.format(**words), kind.fix.format(**words)
