"""The comparison of two traces, which chooses among the causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jitcache.captures.snapshot import Change, Snapshot, differences
from pytest_jitcache.causes.table import CAUSES, ORDER
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
class Difference:
    """What differs between two traces: the cause, the argument or setting, and how it looked before and now."""

    cause: str
    what: str = ""
    before: str = ""
    after: str = ""
    inside: int = 0  # of the traces around the two, how many levels out
    nested: bool = False  # it is something that `what` holds
    captured: tuple[Change, ...] | None = None  # what differs in what the two hold; None where that is not known

    @property
    def title(self) -> str:
        title = CAUSES[self.cause].title
        if self.what and CAUSES[self.cause].argument:
            return f"{title} ({_short(self.what)})"
        return title


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
        kept = earlier.ref() is not None and earlier.slot != later.slot
        cause = "kept" if kept else "function" if later.traced_for in _CALLS else "body"
        found.append(Difference(cause, captured=_captured(earlier.captured, later.captured)))
    if settings and any(d.cause == "dtype" and "x64" in s.what for s in settings for d in arguments):
        found += settings
        settings = []
    found += sorted(arguments, key=lambda d: ORDER[d.cause])
    found += settings
    found += _placement(earlier, later, compiled)
    if earlier.options != later.options:
        before, after = dict(earlier.options), dict(later.options)
        changed = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
        found.append(Difference("options", ", ".join(changed), str(before), str(after)))
    if not found and earlier.epoch is later.epoch and earlier.inside and later.inside and not later.inside.body:
        found += [d for d in _around(earlier.inside, later.inside) if d.cause in ("function", "body")]
    if not found and earlier.wrapper is not later.wrapper and earlier.epoch is later.epoch:
        found.append(Difference("rewrapped"))
    if not found and compiled and earlier.number == later.number:
        found.append(Difference("compiled again"))
    if not found:
        cleared = earlier.epoch is not later.epoch or (bool(later.settings) and same_object)
        found.append(Difference("caches cleared" if cleared else "unknown"))
    return found


def _captured(earlier: Snapshot | None, later: Snapshot | None) -> tuple[Change, ...] | None:
    return None if earlier is None or later is None else tuple(differences(earlier, later))


def _around(earlier: Trace, later: Trace) -> list[Difference]:
    """The differences between the traces in which two traces happened."""
    return [replace(d, inside=d.inside + 1) for d in compare(earlier, later)]


_CALLS = ("jit", "checkpoint / remat", "pmap", "shard_map")  # what a function is traced for that is no loop's body


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
    known = [_captured(x.captured, y.captured) for x, y in pairs]
    captured = None if not known or None in known else tuple(change for one in known for change in one or ())
    if not pairs or pairs[0][0] is a:
        return Difference(cause, path, token_text(a), token_text(b), captured=captured)
    return Difference(cause, path, pairs[0][0].text, pairs[0][1].text, nested=True, captured=captured)


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
