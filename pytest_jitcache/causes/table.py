"""The one table of causes: why JAX traced or compiled a function again, and what ends it.

All that lists causes derives from it: the order among several, the failure, the summary, the rules of the linter that find
the same in the source, and the page that `python -m pytest_jitcache causes` prints.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """One way of retracing, a row of the table.

    Attributes:
        title: the words of the failure's first line.
        looks_at: what of the two traces is compared to find it.
        why: what JAX does and why, one or two sentences. May use the words of `words.explain`, such as `{what}`.
        fix: the one change that ends it, with the same words.
        fix_apart: that where the two functions (or objects) hold other values, `{captured}`: never to keep one of them,
            which would go on with its own.
        example: lines of Python that provoke it, after `PRELUDE`.
        argument: whether the first line names what differs: an argument, a setting.
        new_signature: whether JAX promises one trace for each of what differs.
        made_anew: whether the two traces are of what looks the same in the source, as from one test to the next.
        codes: of the linter's rules that find it in the source, the likeliest first. A function made anew has its own,
            in `kinds.KINDS`, and these after it.
    """

    title: str
    looks_at: str
    why: str
    fix: str
    example: str
    argument: bool = True
    new_signature: bool = False
    made_anew: bool = False
    codes: tuple[str, ...] = ()
    fix_apart: str = ""


_AS_ARGUMENT = (
    "Let {fun} take {captured} as an argument{static}, and pass it in each call: then the function captures nothing that "
    "differs. The one made first would go on with the first value, and give wrong results."
)
_OF_ITS_OWN = (
    "Pass {captured} to {fun} as an argument of its own{static}, so that what is passed as `{what}` holds nothing that "
    "differs. The first one would go on with the first value, and give wrong results."
)

PRELUDE = """\
import jax
import jax.numpy as jnp
from pytest_jitcache import traced_once

X = jnp.ones(2)
"""

# In the order in which the differences between two calls are told; the first one is to blame.
CAUSES: dict[str, Cause] = {
    "function": Cause(
        "new function object",
        "the function under the jit: which object it is",
        "{kind_why} JAX's trace cache goes by the identity of the function object, so a new object is traced from scratch.",
        "{kind_fix}",
        """
def scaled(x):
    return jax.jit(lambda v: v * 2.0)(x)


with traced_once():
    scaled(X)
    scaled(X)
""",
        argument=False,
        made_anew=True,
        codes=("JIT106",),
        fix_apart=_AS_ARGUMENT,
    ),
    "kept": Cause(
        "made anew and kept",
        'functions from one place in the source, with `per="definition"`: whether the earlier ones are alive',
        "Another `{name}` from {place} is alive still. What makes one on each call and keeps it (a list that grows, a registry, "
        "a cache whose key is a new object each time) never finds the trace of the last, and frees none.",
        "Make `{name}` once for each value that it needs, under a key that is equal each time, and use that one; pass what "
        "changes from call to call as an argument.",
        """
made = []


def scaled(x):
    made.append(jax.jit(lambda v: v * 2.0))
    return made[-1](x)


with traced_once(per="definition"):
    scaled(X)
    scaled(X)
""",
        argument=False,
        made_anew=True,
        codes=("JIT192",),
        fix_apart=_AS_ARGUMENT,
    ),
    "body": Cause(
        "new function object",
        "the body of an eager loop or branch: which object it is",
        "The body given to `{traced_for}` is made anew on each call, and JAX keeps the trace of a control-flow body by the "
        "identity of its function object.",
        "Define the body once, at module level, and pass what it needs through the carry or the operands; or put the "
        "whole call under one jitted function that is kept.",
        """
def total(xs):
    def add(carry, x):
        return carry + x, None

    return jax.lax.scan(add, 0.0, xs)[0]


with traced_once():
    total(X)
    total(X)
""",
        argument=False,
        made_anew=True,
        codes=("JIT401",),
        fix_apart=_AS_ARGUMENT,
    ),
    "class": Cause(
        "class made anew",
        "the classes of static arguments and of pytrees: which objects they are",
        "`{what}` is of a class, or is one, that is defined inside a function: each run of it makes a new class, and to JAX "
        "each is another type, though it looks the same.",
        "Define the class once, at module level.",
        """
from typing import NamedTuple


def batch(x):
    class Batch(NamedTuple):
        x: jax.Array

    return Batch(x)


step = jax.jit(lambda batch: batch.x + 1)
with traced_once(step):
    step(batch(X))
    step(batch(X))
""",
    ),
    "static made anew": Cause(
        "static argument made anew",
        "static arguments that compare by identity: which objects they are",
        "`{what}` is static, and {held} compares by identity, so each new object is a new key in JAX's cache{though_same}.",
        "{anew_fix}",
        """
apply = jax.jit(lambda function, x: function(x), static_argnums=0)
with traced_once(apply):
    for _ in range(2):
        apply(lambda v: v + 1, X)
""",
        codes=("JIT304",),
        fix_apart=_OF_ITS_OWN,
    ),
    "static nan": Cause(
        "static argument is NaN",
        "static arguments: whether one is NaN",
        "`{what}` is static and NaN is unequal to itself, so JAX never finds the earlier trace.",
        "{nan_fix}",
        """
step = jax.jit(lambda x, fill: jnp.nan_to_num(x, nan=fill), static_argnums=1)
with traced_once(step):
    step(X, float("nan"))
    step(X, float("nan"))
""",
    ),
    "metadata": Cause(
        "pytree structure made anew",
        "the static part (metadata) of pytrees: objects in it that compare by identity",
        "The static part (metadata) of the pytree `{what}` holds an object that compares by identity, so each new one is a "
        "new pytree structure to JAX.",
        "{anew_fix}",
        """
step = jax.jit(lambda function, x: function(x))
with traced_once(step):
    for _ in range(2):
        step(jax.tree_util.Partial(lambda v: v + 1), X)
""",
        fix_apart=_OF_ITS_OWN,
    ),
    "metadata value": Cause(
        "pytree structure",
        "the static part (metadata) of pytrees: its values",
        "The static part (metadata) of the pytree `{what}` has another value, and JAX traces once for each.",
        "Keep it the same in every call, or make it a leaf of the pytree (an array) if only its value matters.",
        """
import dataclasses


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    x: jax.Array
    step: int = dataclasses.field(metadata={"static": True})


step = jax.jit(lambda state: state.x + state.step)
with traced_once(step, per="total"):
    step(State(X, 1))
    step(State(X, 2))
""",
    ),
    "structure": Cause(
        "pytree structure",
        "arguments: their containers and keys, and how many there are",
        "The pytree `{what}` has another structure, and JAX traces once for each structure.",
        "Give `{what}` the same structure in every call: the same container types and keys, and an array where None stood.",
        """
step = jax.jit(lambda state: state["x"] + 1)
with traced_once(step, per="total"):
    step({"x": X})
    step({"x": X, "mean": X})
""",
        new_signature=True,
    ),
    "dtype": Cause(
        "dtype",
        "arguments: the dtype of each array",
        "JAX traces once for each dtype.",
        "Convert `{what}` to one dtype before the call.",
        """
step = jax.jit(lambda x: x + 1)
with traced_once(step, per="total"):
    step(X)
    step(X.astype(int))
""",
        new_signature=True,
    ),
    "shape": Cause(
        "shape",
        "arguments: the shape of each array",
        "JAX traces once for each shape.",
        "Pad `{what}` to one shape (or to a few).",
        """
step = jax.jit(lambda x: x + 1)
with traced_once(step, per="total"):
    step(X)
    step(X[:1])
""",
        new_signature=True,
        codes=("JIT501",),
    ),
    "static value": Cause(
        "static argument changed",
        "static arguments: their values",
        "`{what}` is static: JAX traces once for each value of it.",
        "{value_fix}",
        """
power = jax.jit(lambda x, n: x**n, static_argnums=1)
with traced_once(power, per="total"):
    power(X, 2)
    power(X, 3)
""",
        new_signature=True,
        codes=("JIT303",),
    ),
    "default": Cause(
        "default argument spelled out",
        "arguments with a default: whether they are passed",
        "`{what}` was {before} before and {after} now. An omitted default is a constant inside the trace, one that is "
        "passed is an argument, so the two calls are traced apart.",
        "Always pass `{what}`, or never.",
        """
@jax.jit
def step(x, rate=0.5):
    return x * rate


with traced_once(step):
    step(X)
    step(X, 0.5)
""",
    ),
    "keyword": Cause(
        "positional or keyword",
        "arguments: whether they are passed by position or by keyword",
        "`{what}` was passed {before} before and {after} now. JAX's cache keeps calls by position and by keyword apart.",
        "Pass `{what}` the same way in every call.",
        """
@jax.jit
def step(x, y):
    return x + y


with traced_once(step):
    step(X, X)
    step(X, y=X)
""",
    ),
    "weak type": Cause(
        "weak type",
        "arguments: whether a number or an array is weakly typed",
        "{weak_why} gives way to the dtype of the other operand, another array does not. The two may compute different "
        "results, so JAX traces them apart.",
        "{weak_fix}",
        """
step = jax.jit(lambda x, rate: x * rate)
with traced_once(step):
    step(X, 0.5)
    step(X, jnp.float32(0.5))
""",
    ),
    "config": Cause(
        "JAX config",
        "the settings of JAX that are part of its cache key",
        "The setting {what} is part of the key of JAX's trace cache: {before} before, {after} now.",
        "Set it once, before the first call, or keep the calls under different settings in different tests.",
        """
step = jax.jit(lambda x: x @ x)
with traced_once(step):
    step(X)
    with jax.default_matmul_precision("highest"):
        step(X)
""",
    ),
    "mesh": Cause(
        "mesh context (JAX config)",
        "the mesh in force",
        "The mesh in force ({what}) is part of the key of JAX's trace cache.",
        "Make all calls under the same mesh context.",
        """
step = jax.jit(lambda x: x + 1)
with traced_once(step):
    step(X)
    with jax.set_mesh(jax.sharding.Mesh(jax.devices()[:1], ("data",))):
        step(X)
""",
    ),
    "sharding": Cause(
        "sharding",
        "arrays: their devices and how they are split over them",
        "`{what}` lies on other devices or is split in another way, and that is part of the abstract type JAX traces for.",
        "Put `{what}` under one sharding before the first call, with `jax.device_put`.",
        """
from jax.sharding import Mesh, NamedSharding, PartitionSpec

split = NamedSharding(Mesh(jax.devices()[:1], ("data",)), PartitionSpec("data"))
step = jax.jit(lambda x: x + 1)
with traced_once(step, max_compiles=1):
    step(X)
    step(jax.device_put(X, split))
""",
    ),
    "committed": Cause(
        "committed to a device",
        "arrays: whether they are committed to their device",
        "`{what}` was {before} before and is {after} now. JAX compiles for a committed array and for an uncommitted one apart.",
        "Use `jax.device_put(..., device)` for `{what}` in every call, or in none.",
        """
step = jax.jit(lambda x: x + 1)
with traced_once(step, max_compiles=1):
    step(X)
    step(jax.device_put(X, jax.devices()[0]))
""",
    ),
    "options": Cause(
        "jit options",
        "what else was given to `jax.jit`",
        "The function was jitted with other options: {what}.",
        "Jit it once and keep the result.",
        """
def double(x):
    return x * 2


with traced_once(max_compiles=1):
    jax.jit(double)(X)
    jax.jit(double, donate_argnums=0)(X + 0)
""",
        argument=False,
    ),
    "rewrapped": Cause(
        "new function object",
        "what JAX itself wraps around the function for each call",
        "`{name}` is the same as before, but each call wraps it in a new function for JAX's `{traced_for}`, and JAX keeps the "
        "trace by the identity of that one.",
        "Put the call under one jitted function that is kept, so that it is traced once with it.",
        """
def double(x):
    return x * 2


with traced_once():
    jax.lax.map(double, X)
    jax.lax.map(double, X)
""",
        argument=False,
        made_anew=True,
    ),
    "compiled again": Cause(
        "compiled again",
        "a compile without another trace",
        "It was traced once, and the loop that it is the body of was compiled again: another bound or length, or arrays "
        "that lie elsewhere, make another program.",
        "Keep bounds, lengths and devices the same, or allow more with max_compiles.",
        """
def add(i, x):
    return x + i


with traced_once(max_compiles=1):
    jax.lax.fori_loop(0, 3, add, 0)
    jax.lax.fori_loop(0, 4, add, 0)
""",
        argument=False,
    ),
    "caches cleared": Cause(
        "caches cleared",
        "whether JAX's caches were cleared in between",
        "Nothing about the two calls differs. JAX's caches were cleared between them (`jax.clear_caches()` or the "
        "function's `clear_cache()`), or the entry was evicted.",
        "Clear the caches before the first call, not between two.",
        """
step = jax.jit(lambda x: x + 1)
with traced_once(step):
    step(X)
    jax.clear_caches()
    step(X)
""",
        argument=False,
        made_anew=True,
    ),
    "not warm": Cause(
        "not warm for this call",
        "nothing: it is the first, where none is allowed",
        "Nothing may be traced or compiled where this guard watches: all that is called there has to be warm, that is, to "
        "have been called before with the same signature. This call was the first of its signature since `{name}` was made "
        "or its caches were cleared.",
        "Call `{name}` with the same shapes, dtypes and static values before the guard begins; if that was done, what it is "
        "called with varies, so pad it to one shape.",
        """
step = jax.jit(lambda x: x + 1)
step(X)
with traced_once(step, max_traces=0):
    step(X[:1])
""",
        argument=False,
    ),
    "unknown": Cause(
        "cause unknown",
        "all of the above, and nothing differs",
        "Everything that is known of the two calls is the same.",
        "Run pytest with -vv: it shows all that is known, and what JAX itself says about each trace.",
        "",
        argument=False,
    ),
}

ORDER = {name: number for number, name in enumerate(CAUSES)}
