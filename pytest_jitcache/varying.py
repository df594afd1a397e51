"""What differs between the signatures of one function, in one line: a batch size, a static step number, a dtype."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytest_jitcache.signature import Leaf, Node, Signature, leaves_of, token_text

_LEAVES = 200  # of one signature that are looked at
_SHOWN = 3

Parts = dict[str, list[Any]]  # path -> ["f32", [3, 4]] of an array, ["static", text] of anything else; JSON types


def parts(signature: Signature) -> Parts:
    """A signature leaf by leaf, as plain data."""
    found: Parts = {}
    for argument in signature.arguments:
        if argument.passed == "omitted":
            continue
        for path, text in _metadata(argument.tree, argument.name):
            found[path] = ["static", text]
        for path, leaf in leaves_of(argument.tree):
            if len(found) >= _LEAVES:
                return found
            plain = leaf.form == "static" or not leaf.dtype
            found[argument.name + path] = ["static", str(leaf)] if plain else [leaf.dtype, list(leaf.shape)]
    return found


def _metadata(tree: Node | Leaf, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, Node):
        if tree.meta is not None and tree.type is not dict:  # whose keys are in the paths
            yield f"metadata of {path}", token_text(tree.meta)
        for entry, child in zip(tree.entries, tree.children, strict=True):
            yield from _metadata(child, path + entry)


def varying(signatures: Sequence[Parts]) -> str:
    """What differs, such as `9 signatures: only x.shape[0] differs (1, 2, 3, ...)`; empty for a single signature."""
    if len(signatures) < 2:
        return ""
    paths = dict.fromkeys(path for one in signatures for path in one)
    told = [*{what: values for path in paths for what, values in _of(path, signatures)}.items()]
    count = f"{len(signatures)} signatures"
    if not told:
        return count
    first, values = told[0]
    shown = f" ({', '.join(values[:_SHOWN])}{', ...' if len(values) > _SHOWN else ''})" if values else ""
    if len(told) == 1:
        return f"{count}: only {first} differs{shown}"
    others = [what for what, _ in told[1:]]
    if len(others) > _SHOWN:
        return f"{count}: {first}{shown} and {len(others)} more differ"
    return f"{count}: {first}{shown} and {', '.join(others)} differ"


def of_traces(signatures: Iterable[Signature]) -> str:
    """The same of signatures as they are, each counted once."""
    return varying([parts(one) for one in {s.key: s for s in signatures}.values()])


def _of(path: str, signatures: Sequence[Parts]) -> list[tuple[str, list[str]]]:
    leaves = [one.get(path) for one in signatures]
    there = [leaf for leaf in leaves if leaf is not None]
    found: list[tuple[str, list[str]]] = []
    if len(there) < len(leaves):
        return [(f"the structure of {re.split(r'[.[]', path)[0]}", [])]
    if any(leaf[0] == "static" for leaf in there):
        values = list(dict.fromkeys(str(leaf[1]) for leaf in there))
        return [(path, [f"static: {values[0]}", *values[1:]])] if len(values) > 1 else []
    dtypes = list(dict.fromkeys(leaf[0] for leaf in there))
    if len(dtypes) > 1:
        found.append((f"{path}.dtype", dtypes))
    shapes = [tuple(leaf[1]) for leaf in there]
    if len({len(shape) for shape in shapes}) > 1:
        found.append((f"{path}.shape", [str(shape) for shape in dict.fromkeys(shapes)]))
    else:
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if len(set(sizes)) > 1:
                found.append((f"{path}.shape[{axis}]", [str(size) for size in dict.fromkeys(sizes)]))
    return found
