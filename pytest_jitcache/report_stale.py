"""The text of a stale value: what keeps it, what changed, where it is read, and the one change that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_jitcache.captures.remedies import called, listed, static
from pytest_jitcache.captures.snapshot import Change
from pytest_jitcache.report import described, wrapped

if TYPE_CHECKING:
    from pytest_jitcache.captures.proof import Stale

_SHOWN = 4

# Names by which a body reads what is another value each time, and what to do instead.
_IMPURE = (
    (("random", "default_rng", "randn", "normal", "uniform", "shuffle", "rng"),
     "Draw the numbers with `jax.random` from a key that is passed to {name}, or draw them outside and pass them."),
    (("time", "perf_counter", "perf_counter_ns", "monotonic_ns", "monotonic", "now", "time_ns", "datetime"),
     "Read the clock outside, and pass the time to {name} as an argument."),
    (("next", "__next__", "pop", "popleft", "get"),
     "Take the next item outside, and pass it to {name} as an argument."),
)  # fmt: skip


def title(stale: Stale) -> str:
    """The first line."""
    name = stale.trace.name
    first = told(stale)[:1]
    if first:
        before, after = first[0].before.text, first[0].after.text
        words = f"{before} when traced, {after} now" if before != after else f"{before}, another one now"
        return f"{name} keeps a stale value: {first[0].path} ({words})"
    if stale.impure:
        return f"{name} gives another program each time it is traced"
    return f"{name} keeps a stale value: tracing it again gives another program"


def told(stale: Stale) -> list[Change]:
    """The changes, the likeliest to matter first: what the body itself has not changed, then what it has."""
    if stale.impure and not all(c.path in stale.advanced for c in stale.changes):
        return []  # what changed does not explain it
    by_others = [c for c in stale.changes if c.path not in stale.advanced]
    values = [c for c in by_others if c.held != "setting"]
    return values or by_others or stale.changes


def text(stale: Stale, others: Sequence[Stale] = (), info: str | None = None) -> str:
    """The whole text of a failure.

    Args:
        stale: the function to tell of.
        others: more that are stale.
        info: what the user has given to be shown.
    """
    trace = stale.trace
    lines = [title(stale), "", *([info, ""] if info else []), f"{described(trace)} is defined at {trace.place}."]
    site = trace.call_site or trace.test_site
    if site is not None:
        lines.append(f"  traced at {site} in {site.function.replace('.<locals>', '')}")
        if trace.signature.arguments:
            lines.append(f"      {trace.signature.render(100, ())}")
    changes = told(stale)
    for change in changes[:_SHOWN]:
        line = change.before.line or change.after.line
        lines.append(f"  changed: {change}" + (f" (read at {line})" if line else ""))
    if len(changes) > _SHOWN:
        lines.append(f"  … {len(changes) - _SHOWN} more changes")
    if stale.apart is not None:
        lines.append(f"  differs in the program: {stale.apart.what}")
    if stale.raised:
        lines.append(f"  traced again, it raises {stale.raised.splitlines()[0][:90]}")
    lines += ["", *wrapped("why: ", _why(stale)), *wrapped("fix: ", _fix(stale))]
    if others:
        names = list(dict.fromkeys(title(one) for one in others))
        lines += ["", "also:", *(f"  {one}" for one in names[:_SHOWN])]
    return "\n".join(lines)


def _why(stale: Stale) -> str:
    name = called(stale.trace.name)
    if told(stale):
        return (
            f"{_begin(name)} read {listed(told(stale))} while it was traced. A warm call runs the program of that trace and does "
            "not look again, so it goes on with the old value and nothing tells."
        )
    if stale.impure:
        return (
            f"The body of {name} reads something that is another value each time, such as a random number, the time or "
            "an iterator. It is read when the function is traced; each warm call repeats that value."
        )
    return (
        f"{_begin(name)} gave another program when it was traced than it would give now, so it reads something that has changed "
        "since, such as a file or a value inside an object. A warm call goes on with the old one."
    )


def _fix(stale: Stale) -> str:
    name = called(stale.trace.name)
    changes = told(stale)
    if not changes and stale.impure:
        found = (words for names, words in _IMPURE if stale.reads.intersection(names))
        return next(found, "Compute it outside, and pass it to {name} as an argument.").format(name=name)
    if not changes:
        return f"Pass what it reads to {name} as an argument."
    change = changes[0]
    if change.path in stale.advanced and change.held != "setting":
        return f"Pass `{change.path}` to {name} as an argument, and return its new value for the next call."
    if change.held == "setting":
        return f"Set `{change.path}` before the first call of {name}, and keep it; or clear its cache (`clear_cache()`) after it is set."
    return _pass(stale, changes)


def _pass(stale: Stale, changes: Sequence[Change]) -> str:
    name, change = called(stale.trace.name), changes[0]
    what = listed(changes[:3])
    if change.held == "partial":
        return f"Leave {what} out of the partial, and pass it in each call{_as_static(stale, changes)}."
    if change.held == "default":
        return f"Pass {what} in each call{_as_static(stale, changes)}; a default is read once."
    if any(c.after.kind in ("function", "object") for c in changes) and not _as_static(stale, changes):
        return (
            f"Pass {what} to {name}, as a static argument if it is a function, as a pytree if it holds arrays; or jit "
            f"a function of its own for each."
        )
    owner = change.path.partition(".")[0]
    if change.held in ("self", "static") and "." in change.path:
        return (
            f"Pass {what} to {name} as an argument of its own{_as_static(stale, changes)}, or make the class of `{owner}` a "
            "pytree and pass it as an argument that is not static."
        )
    return f"Pass {what} to {name} as an argument{_as_static(stale, changes)}."


def _as_static(stale: Stale, changes: Sequence[Change]) -> str:
    return static(changes, structure=stale.apart is None or stale.apart.structure)


def _begin(name: str) -> str:
    return name[:1].upper() + name[1:]
