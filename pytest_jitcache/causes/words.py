"""The words of a cause that depend on what differs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_jitcache.captures.remedies import called, listed, static
from pytest_jitcache.causes.compare import Difference
from pytest_jitcache.causes.kinds import made_anew
from pytest_jitcache.causes.table import CAUSES

if TYPE_CHECKING:
    from pytest_jitcache.recorder import Trace


def explain(difference: Difference, earlier: Trace, later: Trace) -> tuple[str, str]:
    """The sentences `why` and `fix` for a difference."""
    cause = CAUSES[difference.cause]
    for _ in range(difference.inside):
        earlier, later = earlier.inside or earlier, later.inside or later
    kind_why, kind_fix = made_anew(later)
    words = {
        "name": later.name,
        "fun": called(later.name),
        "place": later.place,
        "what": difference.what,
        "before": difference.before,
        "after": difference.after,
        "traced_for": _public_name(later.traced_for),
        "kind_why": kind_why,
        "kind_fix": kind_fix,
        "though_same": ", though it holds the same as the last" if difference.captured == () else "",
        "held": "what it holds" if difference.nested else "its type",
        "anew_fix": _anew_fix(difference, later),
        "nan_fix": _nan_fix(difference),
        "value_fix": _value_fix(difference),
        "weak_why": _weak_why(difference),
        "weak_fix": _weak_fix(difference),
    }
    why = cause.why.format(**words)
    if not difference.captured or not cause.fix_apart:
        return why, cause.fix.format(**words)
    changes = [c for c in difference.captured if c.held != "setting"] or [*difference.captured]
    told = "; ".join(
        f"{c.path} was {c.before.text}, is {c.after.text}" for c in changes[:2] if c.before.text != c.after.text
    )
    why += f" What it captures differs: {told}." if told else f" What it captures differs: another {changes[0].path}."
    if _of_a_library(difference) == "optax":
        return why, (
            "Build the transformation once, outside, and pass it to each call; where a value of it varies, make it with "
            "`optax.inject_hyperparams`, which takes the value into the state."
        )
    words["captured"], words["static"] = listed(changes), static(changes, structure=False)
    return why, cause.fix_apart.format(**words)


def _of_a_library(difference: Difference) -> str:
    """The package that has made a function which the user has passed on, or an empty string."""
    found = re.search(r"site-packages[/\\](\w+)[/\\]", difference.after)
    return found.group(1) if found else ""


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


def _anew_fix(difference: Difference, later: Trace) -> str:
    if _of_a_library(difference):
        site = later.call_site or later.test_site
        at = f", in the call at {site}," if site is not None else ""
        return f"Make what is passed as `{difference.what}`{at} once, before the first call, and pass the same one each time."
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
