"""The texts of JIT201 to JIT205 and JIT291."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import describe_loop, functions_around
from flake8_jitcache.facts.scopes import COMPREHENSIONS, DEFINITIONS
from flake8_jitcache.rules.captured.changes import Change
from flake8_jitcache.rules.listing import listed
from flake8_jitcache.rules.needs import needed_by_python

if TYPE_CHECKING:
    from flake8_jitcache.rules.captured import Stale
    from flake8_jitcache.rules.captured.impure import Impure

_VERBS = {"rebinds": "is rebound", "assigns": "is assigned", "mutates": "is mutated", "sets": "is set"}


def stale(module: Module, found: Sequence[Stale]) -> str:
    """What goes stale and what to do: of the first in full, of the others the names."""
    first = found[0]
    text = _advanced(module, first) if first.advanced else _kept(module, first)
    if first.doubt:
        text = f"not certain, as {first.doubt}: {text}"
    return text + _others(found)


def impure(found: Sequence[Impure], doubt: str = "") -> str:
    """What traced code reads of the outside world."""
    first = found[0]
    spelled = list(dict.fromkeys(ast.unparse(one.node) for one in found))
    what = first.what
    remedy = {
        "a random number": "draw with `jax.random` from a key that is an argument, or pass the number as an argument",
        "the time": "read it outside and pass it as an argument",
        "the environment": "read it outside and pass what depends on it as an argument",
    }.get(what, "ask for it outside and pass it as an argument")
    text = (
        f"the jitted code reads {what} with {listed(spelled)} when it is traced, and the result depends on it: each later call gets "
        f"what the trace got; {remedy}"
    )
    return f"not certain, as {doubt}: {text}" if doubt else text


def _kept(module: Module, one: Stale) -> str:
    where = _where(module, one.change)
    needs = needed_by_python(module, one.read)
    if one.code == "JIT204":
        remedy = "pass it as an argument, as a JAX array or a pytree"
        if one.change.kind == "set":
            remedy = "pass it as a static argument, as a frozenset"
        elif needs is not None:
            remedy = f"pass what the code {needs} as a static argument"
        return (
            f"the jitted code reads `{one.spelled}` when it is traced, and {where}: a call that is not traced again keeps "
            f"the old content; {remedy}"
        )
    remedy = f"pass `{one.spelled}` as an argument"
    if needs is not None:
        remedy = f"pass `{one.spelled}` as a static argument, as the code {needs} it"
    elif any(end.kind == "unknown" for end in module.flows.ends(one.read)):
        remedy += ", a static one where Python needs its value"
    if one.code == "JIT203":
        return (
            f"the jitted code reads `{one.spelled}` when it is traced, since its object is not a traced argument, "
            f"and {where}: a call that is not traced again keeps the old value; {remedy}"
        )
    what = "global" if one.code == "JIT201" else "captured local"
    if one.late:
        return (
            f"the jitted code reads the {what} `{one.spelled}` at its first call, not where it is made, and "
            f"{where}: it sees the later value; {remedy}, or bind it there with a default "
            f"`{one.spelled}={one.spelled}`"
        )
    return (
        f"the jitted code reads the {what} `{one.spelled}` when it is traced, and {where}: a call that is not "
        f"traced again keeps the old value; {remedy}"
    )


def _advanced(module: Module, one: Stale) -> str:
    line = one.change.node.lineno  # type: ignore[attr-defined]
    return (
        f"the jitted code itself advances `{one.spelled}` in line {line}, which happens when it is traced and not on later "
        f"calls, and the result depends on it: each later call gets what the trace got; pass `{one.spelled}` as an argument "
        "and return the new one"
    )


def _others(found: Sequence[Stale]) -> str:
    first = found[0]
    names = dict.fromkeys(one.spelled for one in found if bool(one.doubt) == bool(first.doubt))
    names.pop(first.spelled)
    return f"; the same holds for {listed(list(names))}" if names else ""


def _where(module: Module, change: Change) -> str:
    node = change.node
    verb = _VERBS[change.verb]
    line = f"in line {node.lineno}"  # type: ignore[attr-defined]
    for child, parent in module.source.ancestors(node):
        if isinstance(parent, (ast.For, ast.AsyncFor, *COMPREHENSIONS)) and module.source.fields[child] == "target":
            return f"it {verb} by {describe_loop(parent)}"
    around = functions_around(module.source, node)
    if around and isinstance(around[0], DEFINITIONS):
        return f"`{around[0].name}` {change.verb} it {line}"
    return f"it {verb} {line}"
