"""Why a function was traced (or compiled) again: the one table of causes, and the comparison that chooses among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jitcache.signature import (
    OMITTED,
    Argument,
    ByIdentity,
    Leaf,
    Node,
    has_nan,
    identities,
    kind_name,
    leaves_of,
    token_text,
)

if TYPE_CHECKING:
    from pytest_jitcache.recorder import Trace


@dataclass(frozen=True)
class Cause:
    """One way of retracing.

    Attributes:
        title: the words of the failure's first line.
        why: what JAX does and why, one or two sentences. May use `{name}` (the function), `{what}` (the argument).
        fix: the one change that ends it.
    """

    title: str
    why: str
    fix: str


CAUSES: dict[str, Cause] = {
    "function": Cause(
        "new function object",
        "{kind_why} JAX's trace cache goes by the identity of the function object, so a new object is traced from scratch.",
        "{kind_fix}",
    ),
    "body": Cause(
        "new function object",
        "The body given to `{traced_for}` is made anew on each call, and JAX keeps the trace of a control-flow body by the "
        "identity of its function object.",
        "Define the body once, at module level, and pass what it needs through the carry or the operands; or put the "
        "whole call under one jitted function that is kept.",
    ),
    "rewrapped": Cause(
        "new function object",
        "`{name}` is the same as before, but each call wraps it in a new function for JAX's `{traced_for}`, and JAX keeps the "
        "trace by the identity of that one.",
        "Put the call under one jitted function that is kept, so that it is traced once with it.",
    ),
    "static made anew": Cause(
        "static argument made anew",
        "`{what}` is static, and {held} compares by identity, so each new object is a new key in JAX's cache, though it "
        "holds the same as the last.",
        "{anew_fix}",
    ),
    "static nan": Cause(
        "static argument is NaN",
        "`{what}` is static and NaN is unequal to itself, so JAX never finds the earlier trace.",
        "{nan_fix}",
    ),
    "metadata": Cause(
        "pytree structure made anew",
        "The static part (metadata) of the pytree `{what}` holds an object that compares by identity, so each new one is a "
        "new pytree structure to JAX.",
        "{anew_fix}",
    ),
    "metadata value": Cause(
        "pytree structure",
        "The static part (metadata) of the pytree `{what}` has another value, and JAX traces once for each.",
        "Keep it the same in every call, or make it a leaf of the pytree (an array) if only its value matters.",
    ),
    "class": Cause(
        "class made anew",
        "`{what}` is of a class, or is one, that is defined inside a function: each run of it makes a new class, and to JAX "
        "each is another type, though it looks the same.",
        "Define the class once, at module level.",
    ),
    "static value": Cause(
        "static argument changed",
        "`{what}` is static: JAX traces once for each value of it.",
        "{value_fix}",
    ),
    "keyword": Cause(
        "positional or keyword",
        "`{what}` was passed {before} before and {after} now. JAX's cache keeps calls by position and by keyword apart.",
        "Pass `{what}` the same way in every call.",
    ),
    "default": Cause(
        "default argument spelled out",
        "`{what}` was {before} before and {after} now. An omitted default is a constant inside the trace, one that is "
        "passed is an argument, so the two calls are traced apart.",
        "Always pass `{what}`, or never.",
    ),
    "weak type": Cause(
        "weak type",
        "{weak_why} gives way to the dtype of the other operand, another array does not. The two may compute different "
        "results, so JAX traces them apart.",
        "{weak_fix}",
    ),
    "structure": Cause(
        "pytree structure",
        "The pytree `{what}` has another structure, and JAX traces once for each structure.",
        "Give `{what}` the same structure in every call: the same container types and keys, and an array where None stood.",
    ),
    "dtype": Cause(
        "dtype",
        "JAX traces once for each dtype.",
        "Convert `{what}` to one dtype before the call.",
    ),
    "shape": Cause(
        "shape",
        "JAX traces once for each shape.",
        "Pad `{what}` to one shape (or to a few).",
    ),
    "config": Cause(
        "JAX config",
        "The setting {what} is part of the key of JAX's trace cache: {before} before, {after} now.",
        "Set it once, before the first call, or keep the calls under different settings in different tests.",
    ),
    "mesh": Cause(
        "mesh context (JAX config)",
        "The mesh in force ({what}) is part of the key of JAX's trace cache.",
        "Make all calls under the same mesh context.",
    ),
    "sharding": Cause(
        "sharding",
        "`{what}` lies on other devices or is split in another way, and that is part of the abstract type JAX traces for.",
        "Put `{what}` under one sharding before the first call, with `jax.device_put`.",
    ),
    "committed": Cause(
        "committed to a device",
        "`{what}` was {before} before and is {after} now. JAX compiles for a committed array and for an uncommitted one apart.",
        "Use `jax.device_put(..., device)` for `{what}` in every call, or in none.",
    ),
    "options": Cause(
        "jit options",
        "The function was jitted with other options: {what}.",
        "Jit it once and keep the result.",
    ),
    "caches cleared": Cause(
        "caches cleared",
        "Nothing about the two calls differs. JAX's caches were cleared between them (`jax.clear_caches()` or the "
        "function's `clear_cache()`), or the entry was evicted.",
        "Clear the caches before the first call, not between two.",
    ),
    "compiled again": Cause(
        "compiled again",
        "It was traced once, and the loop that it is the body of was compiled again: another bound or length, or arrays "
        "that lie elsewhere, make another program.",
        "Keep bounds, lengths and devices the same, or allow more with max_compiles.",
    ),
    "unknown": Cause(
        "cause unknown",
        "Everything that is known of the two calls is the same.",
        "Run pytest with -vv: it shows all that is known, and what JAX itself says about each trace.",
    ),
}


@dataclass(frozen=True)
class Difference:
    """What differs between two traces: the cause, the argument or setting, and how it looked before and now."""

    cause: str
    what: str = ""
    before: str = ""
    after: str = ""
    inside: int = 0  # of the traces around the two, how many levels out
    nested: bool = False  # it is something that `what` holds

    @property
    def title(self) -> str:
        title = CAUSES[self.cause].title
        if self.what and self.cause not in _WITHOUT_ARGUMENT:
            return f"{title} ({_short(self.what)})"
        return title


_WITHOUT_ARGUMENT = ("function", "body", "rewrapped", "caches cleared", "compiled again", "unknown", "options")


def _short(what: str, limit: int = 30) -> str:
    return what if len(what) <= limit else "…" + what[-limit + 1 :]


def compare(earlier: Trace, later: Trace, compiled: bool = False) -> list[Difference]:
    """All differences between two traces of one function, the one to blame first."""
    found: list[Difference] = []
    if earlier.inline_of is not None and earlier.inside is not None and later.inside is not None:
        found += _arguments(earlier, later)
        if earlier.inside is not later.inside:
            found += [d for d in _around(earlier.inside, later.inside) if d.cause != "unknown"]
        return found or [Difference("unknown")]
    same_object = earlier.ref() is not None and earlier.ref() is later.ref()
    arguments = _arguments(earlier, later)
    settings = _settings(earlier, later)
    new_object = (
        not same_object and (earlier.object_id != later.object_id or earlier.ref() is None) and bool(later.layers)
    )
    if new_object:
        found.append(Difference("function" if later.traced_for in _CALLS else "body", later.name))
    if settings and any(d.cause == "dtype" and "x64" in s.what for s in settings for d in arguments):
        found += settings
        settings = []
    found += sorted(arguments, key=lambda d: _ORDER.index(d.cause))
    found += settings
    found += _placement(earlier, later, compiled)
    if earlier.options != later.options:
        before, after = dict(earlier.options), dict(later.options)
        changed = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
        found.append(Difference("options", ", ".join(changed), str(before), str(after)))
    if not found and earlier.inside is not None and later.inside is not None and not later.inside.body:
        found += [d for d in _around(earlier.inside, later.inside) if d.cause in ("function", "body")]
    if not found and earlier.wrapper is not later.wrapper and earlier.epoch is later.epoch:
        found.append(Difference("rewrapped", later.name))
    if not found and compiled and earlier.number == later.number:
        found.append(Difference("compiled again"))
    if not found:
        cleared = earlier.epoch is not later.epoch or (bool(later.settings) and same_object)
        found.append(Difference("caches cleared" if cleared else "unknown"))
    return found


def _around(earlier: Trace, later: Trace) -> list[Difference]:
    """The differences between the traces in which two traces happened."""
    return [replace(d, inside=d.inside + 1) for d in compare(earlier, later)]


_CALLS = ("jit", "checkpoint / remat", "pmap", "shard_map")  # what a function is traced for that is no loop's body

_ORDER = [
    "class",
    "static made anew",
    "static nan",
    "metadata",
    "metadata value",
    "structure",
    "dtype",
    "shape",
    "static value",
    "default",
    "keyword",
    "weak type",
    "sharding",
    "committed",
]


def _arguments(earlier: Trace, later: Trace) -> list[Difference]:
    before = {a.name: a for a in earlier.signature.arguments}
    after = {a.name: a for a in later.signature.arguments}
    found: list[Difference] = []
    for name in [*before, *(n for n in after if n not in before)]:
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            one = a or b
            assert one is not None
            gone = Difference("structure", name, str(one.tree), "not passed")
            found.append(gone if b is None else Difference("structure", name, "not passed", str(one.tree)))
            continue
        if OMITTED in (a.passed, b.passed):
            if a.passed != b.passed:
                found.append(Difference("default", name, _how(a), _how(b)))
            continue
        found += _trees(name, a.tree, b.tree)
        if a.passed != b.passed:
            found.append(Difference("keyword", name, f"by {a.passed}", f"by {b.passed}"))
    return found


def _how(argument: Argument) -> str:
    if argument.passed == OMITTED:
        return f"left at its default {argument.tree}"
    return f"passed ({argument.tree}, by {argument.passed})"


def _trees(path: str, a: Node | Leaf, b: Node | Leaf) -> Iterator[Difference]:
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        yield from _leaf(path, a, b)
    elif isinstance(a, Node) and isinstance(b, Node) and a.type == b.type and a.entries == b.entries:
        if _made_anew(a.type, b.type):
            yield Difference("class", path, str(a), str(b))
        if a.meta != b.meta:
            yield Difference("metadata value", path, *_first_difference(a.meta, b.meta))
        elif _made_anew(a.meta, b.meta) or has_nan(a.meta):
            yield _anew("metadata", path, a.meta, b.meta)
        for entry, child, other in zip(a.entries, a.children, b.children, strict=True):
            yield from _trees(path + entry, child, other)
    else:
        yield Difference("structure", path, _cut(a), _cut(b))


def _cut(tree: Node | Leaf, limit: int = 70) -> str:
    text = str(tree)
    if len(text) <= limit:
        return text
    kind = kind_name(tree.type) if isinstance(tree, Node) else ""
    return f"{kind} of {sum(1 for _ in leaves_of(tree))} leaves"


def _made_anew(a: object, b: object) -> list[tuple[ByIdentity, ByIdentity]]:
    return [
        (x, y)
        for x, y in zip(identities(a), identities(b), strict=False)
        if x.id != y.id or x.ref() is None or x.ref() is not y.ref()
    ]


def _anew(cause: str, path: str, a: object, b: object) -> Difference:
    """What was made anew: the class, the object itself or something that it holds."""
    pairs = _made_anew(a, b)
    if any(one.is_class for one, _ in pairs):
        return Difference("class", path, token_text(a), token_text(b))
    if not pairs or pairs[0][0] is a:
        return Difference(cause, path, token_text(a), token_text(b))
    return Difference(cause, path, pairs[0][0].text, pairs[0][1].text, nested=True)


def _first_difference(a: object, b: object) -> tuple[str, str]:
    """The text of the first parts of two static tokens that differ."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        apart = next(((x, y) for x, y in zip(a, b, strict=True) if x != y), None)
        if apart is not None and isinstance(apart[0], tuple) and isinstance(apart[1], tuple):
            return _first_difference(*apart)
    return token_text(a), token_text(b)


def _leaf(path: str, a: Leaf, b: Leaf) -> Iterator[Difference]:
    if "static" in (a.form, b.form):
        if a.form != b.form or a.token != b.token:
            yield Difference("static value", path, str(a), str(b))
        elif has_nan(a.token):
            yield Difference("static nan", path, str(a), str(b))
        elif _made_anew(a.token, b.token):
            yield _anew("static made anew", path, a.token, b.token)
        return
    if a.dtype != b.dtype:
        yield Difference("dtype", path, str(a), str(b))
    if a.shape != b.shape:
        yield Difference("shape", path, str(a), str(b))
    if a.dtype == b.dtype and a.weak != b.weak:
        yield Difference("weak type", path, str(a), str(b))


def _settings(earlier: Trace, later: Trace) -> list[Difference]:
    if earlier.settings is later.settings:
        return []
    before, after = dict(earlier.settings), dict(later.settings)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    found = []
    for name in [n for n in changed if not n.startswith("#")] or changed:
        old, new = before.get(name, "unset"), after.get(name, "unset")
        mesh = "mesh" in name or "Mesh" in old + new
        shown = name if not name.startswith("#") else "the mesh" if mesh else "a setting without a name"
        found.append(Difference("mesh" if mesh else "config", shown, old, new))
    return found


def _placement(earlier: Trace, later: Trace, compiled: bool) -> list[Difference]:
    found: list[Difference] = []
    before = {a.name: a.tree for a in earlier.signature.arguments}
    for argument in later.signature.arguments:
        if argument.name not in before:
            continue
        for (path, a), (_, b) in zip(leaves_of(before[argument.name]), leaves_of(argument.tree), strict=False):
            if a.form != "array" or b.form != "array":
                continue
            what = argument.name + path
            if a.sharding != b.sharding and (compiled or "Sharding" in a.sharding + b.sharding):
                found.append(Difference("sharding", what, f"{a} on {a.sharding}", f"{b} on {b.sharding}"))
            elif compiled and a.committed != b.committed:
                words = {True: f"committed to {b.sharding}", False: "uncommitted"}
                found.append(Difference("committed", what, words[a.committed], words[b.committed]))
    return found


# --- words for the causes that depend on the kind of thing ------------------------------------------------------------


def explain(difference: Difference, earlier: Trace, later: Trace) -> tuple[str, str]:
    """The sentences `why` and `fix` for a difference."""
    cause = CAUSES[difference.cause]
    for _ in range(difference.inside):
        earlier, later = earlier.inside or earlier, later.inside or later
    kind_why, kind_fix = _kind(later)
    words = {
        "name": later.name,
        "what": difference.what,
        "before": difference.before,
        "after": difference.after,
        "traced_for": _public_name(later.traced_for),
        "kind_why": kind_why,
        "kind_fix": kind_fix,
        "held": "what it holds" if difference.nested else "its type",
        "anew_fix": _anew_fix(difference),
        "nan_fix": _nan_fix(difference),
        "value_fix": _value_fix(difference),
        "weak_why": _weak_why(difference),
        "weak_fix": _weak_fix(difference),
    }
    return cause.why.format(**words), cause.fix.format(**words)


def _public_name(traced_for: str) -> str:
    names = {"while_body": "while_loop", "while_cond": "while_loop", "checkpoint / remat": "checkpoint"}
    return names.get(traced_for, traced_for)


def _is_scalar(difference: Difference) -> bool:
    return difference.before.endswith("[]") and difference.after.endswith("[]")


def _weak_why(difference: Difference) -> str:
    if _is_scalar(difference):
        return "A Python scalar is weakly typed (`~f32[]`): it"
    return "An array that is made of Python scalars alone, as by `jnp.full(3, 1.0)`, is weakly typed (`~f32[3]`): it"


def _weak_fix(difference: Difference) -> str:
    if not _is_scalar(difference):
        return f"Give `{difference.what}` its dtype where it is made, such as `jnp.full(3, 1.0, jnp.float32)`."
    dtype = difference.before.lstrip("~").split("[")[0]
    long = {"f": "float", "i": "int", "u": "uint", "c": "complex"}.get(dtype[:1], "") + dtype[1:]
    call = f"jnp.{long}(...)" if long[-1:].isdigit() else "jnp.asarray(..., dtype)"
    return f"Pass `{difference.what}` as the same kind in every call: always a Python scalar, or always an array such as {call}."


def _anew_fix(difference: Difference) -> str:
    which = (
        f"in `{difference.what}`"
        if difference.nested or difference.cause == "metadata"
        else f"passed as `{difference.what}`"
    )
    if "function " in difference.after or "lambda" in difference.after:
        return f"Define the function {which} once, at module level, or keep the one you made."
    return (
        f"Make the object {which} once and keep it, or give its type `__eq__` and `__hash__` by value "
        "(a frozen dataclass has both)."
    )


def _nan_fix(difference: Difference) -> str:
    if difference.after.strip("(j)+0").lower().endswith("nan"):
        return f"Pass `{difference.what}` as a traced argument (not static), or use None as the static mark for a missing value."
    return f"Use None in `{difference.what}` as the static mark for a missing value."


def _value_fix(difference: Difference) -> str:
    if difference.after.lstrip("-")[:1].isdigit():
        return f"If only its value matters to the arithmetic, pass `{difference.what}` as a traced argument; else keep it the same."
    return f"Keep `{difference.what}` the same."


TRANSFORMS = {
    "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "jacobian", "hessian", "linearize", "vjp", "jvp", "checkpoint",
    "named_call", "pmap", "shard_map", "checkify", "vectorize", "custom_jvp", "custom_vjp",
}  # fmt: skip


def _kind(trace: Trace) -> tuple[str, str]:
    outer = next((k for k in trace.kinds if k != "jit"), "function")
    outer = outer.lstrip("_")
    if [k for k in trace.kinds if k != "jit"][:2] == ["jacfwd", "jacrev"]:  # what jax.hessian is made of
        outer = "hessian"
    name = trace.name
    hoist = "and keep the jitted function: at module level, in a cached factory, or on the object that uses it"
    if outer == "partial":
        return (
            f"`functools.partial({name}, ...)` makes a new object each time it is evaluated.",
            f"Build the jitted partial once {hoist}; or jit `{name}` itself and pass the bound values as arguments.",
        )
    if outer == "bound method":
        return (
            f"Looking up the method `{name}` on an instance makes a new bound method each time.",
            "Jit the method once in `__init__` and keep it on the instance, or jit a function that takes the instance's data as arguments.",
        )
    if outer == "lambda":
        return (
            f"The lambda at {trace.place} is made anew each time that line runs.",
            "Jit a function defined at module level (pass what the lambda captures as arguments), or build the jitted lambda once and keep it.",
        )
    if outer == "nested function":
        return (
            f"`{name}` is defined inside another function, so each call of that one makes a new `{name}`.",
            f"Move `{name}` to module level and pass what it captures as arguments, or make the jitted function once and keep it.",
        )
    if outer == "callable object":
        return (
            "A new instance of the callable class is jitted each time.",
            f"Make the instance once {hoist}.",
        )
    if outer in ("JitFn", "JitWrapped"):
        return (
            f"`nnx.jit({name})` makes a new function object each time it is evaluated, even for a module-level function.",
            f"Apply `nnx.jit` once, as a decorator or at module level, {hoist}.",
        )
    if outer == "pmap" or any("cached_shard_map" in kind for kind in trace.kinds):  # what JAX makes a pmap of
        return (
            f"`pmap({name})` makes a new function object each time it is evaluated.",
            f"Build `pmap({name})` once {hoist}.",
        )
    if outer == "wrapper":
        return (
            f"The wrapper around `{name}` is a new function object each time it is made.",
            f"Wrap `{name}` and jit the result once, at module level, {hoist}.",
        )
    if outer in TRANSFORMS or outer not in ("function", "jit"):
        return (
            f"`{outer}({name})` makes a new function object each time it is evaluated.",
            f"Build `jit({outer}({name}))` once, at module level, {hoist}.",
        )
    return (
        f"`{name}` is another function object than before, though no function makes it: its module or code was run again.",
        f"Load `{name}` once, and keep it.",
    )
