"""How a value that a function captures is passed to it instead."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_jitcache.captures.snapshot import Change


def static(changes: Sequence[Change], structure: bool) -> str:
    """What to add where the argument has to be a static one: the value decides what is computed, or can be no array.

    Args:
        changes: the values.
        structure: whether they lead to other operations, and not to the same ones with other numbers.
    """
    kinds = [{c.before.kind, c.after.kind} for c in changes if c.held != "setting"]
    if any(kind & {"choice", "function"} for kind in kinds):
        return ", a static one (`static_argnames`)"
    if any(c.after.kind == "set" for c in changes):
        return ", a static one (`static_argnames`), as a frozenset"
    if structure and any(c.after.kind == "number" and c.after.text.lstrip("-").isdigit() for c in changes):
        return ", a static one (`static_argnames`)"
    return ""


def called(name: str) -> str:
    """A function by its name, in the middle of a sentence."""
    return "the lambda" if name == "<lambda>" else f"`{name}`"


def listed(changes: Sequence[Change]) -> str:
    """The paths of at most three changes, as code."""
    names = [f"`{c.path}`" for c in changes[:3]]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
