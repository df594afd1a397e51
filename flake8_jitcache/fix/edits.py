"""Edits on a text, and the syntax tree of ast-grep that they are made with.

ast-grep keeps what `ast` throws away: parentheses, commas, comments. Where the two parsers disagree on a file, the file
is refused: see `Grammar.misparsed`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ast_grep_py import SgNode, SgRoot

from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.source_file import LINE_END

Span = tuple[int, int]

_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters from `start` to `end` with `text`."""

    start: int
    end: int
    text: str

    def touches(self, other: Edit) -> bool:
        """Whether two edits can't be made at once: they overlap, or put something at the same place."""
        return self.start == other.start or (self.start < other.end and other.start < self.end)


class Positions:
    """Translates the positions of `ast` (1-based line, 0-based column in UTF-8 bytes) to offsets in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]

    def offset(self, line: int, column: int) -> int:
        """The offset of a position of `ast`."""
        start = self.starts[line - 1]
        head = self.text[start : start + column]
        if head.isascii():
            return start + column
        return start + len(self.line(line).encode()[:column].decode())

    def span(self, node: ast.AST) -> Span:
        """Where a node begins and ends."""
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def line_start(self, line: int) -> int:
        """The offset at which a 1-based line begins; the end of the text for the line after the last."""
        return self.starts[line - 1] if line <= len(self.starts) else len(self.text)

    def line(self, number: int) -> str:
        """The text of a 1-based line, with its line end."""
        return self.text[self.line_start(number) : self.line_start(number + 1)]


class Grammar:
    """The syntax tree of ast-grep of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root = SgRoot(text, "python").root()

    def misparsed(self, tree: ast.Module, positions: Positions) -> str:
        """How this tree differs from that of `ast`, in one line; empty where the two agree on every call.

        Before Python 3.12, `ast` has no true positions inside f-strings; calls there are left out.
        """
        if _LONE_RETURN.search(self.text):
            return "line ends are carriage returns alone, which ast-grep takes for white space"
        broken = self.root.find(kind="ERROR")
        if broken is not None:
            return f"ast-grep can't parse line {broken.range().start.line + 1}"
        mine = {span(node) for node in self.root.find_all(kind="call")}
        formatted = [positions.span(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        theirs = {positions.span(node) for node in calls_outside(tree)}
        inside = {positions.span(node) for node in ast.walk(tree) if isinstance(node, ast.Call)} - theirs
        different = {
            call for call in mine ^ theirs if call not in inside and not any(s < call[0] < e for s, e in formatted)
        }
        if different:
            line = self.text.count("\n", 0, min(different)[0]) + 1
            return f"ast-grep reads the calls in line {line} differently from Python"
        return ""

    def node(self, where: Span, kind: str) -> SgNode:
        """The node of one kind that covers exactly a span. Raises Refused where there is none."""
        found = self._nodes.get((where, kind))
        if found is None:
            raise Refused(f"ast-grep sees no {kind.replace('_', ' ')} here")
        return found

    def definition(self, start: int) -> SgNode:
        """The function definition that begins at an offset; its end may take in comments. Raises Refused."""
        for (where, kind), node in self._nodes.items():
            if kind == "function_definition" and where[0] == start:
                return node
        raise Refused("ast-grep sees no function definition here")

    @cached_property
    def _nodes(self) -> dict[tuple[Span, str], SgNode]:
        found: dict[tuple[Span, str], SgNode] = {}
        for node in walk(self.root):
            found.setdefault((span(node), node.kind()), node)
        return found

    def comments(self, within: Span) -> list[SgNode]:
        """The comments in a span, in order."""
        return [
            node
            for node in self.root.find_all(kind="comment")
            if within[0] <= span(node)[0] and span(node)[1] <= within[1]
        ]

    def lines_in_strings(self) -> set[int]:
        """The 1-based lines that begin inside a string: their indentation is content."""
        found: set[int] = set()
        for node in self.root.find_all(kind="string"):
            where = node.range()
            found.update(range(where.start.line + 2, where.end.line + 2))
        return found

    def apply(self, edits: Sequence[Edit]) -> str:
        """The text with edits made; what no edit covers is the same, character for character."""
        made = []
        for edit in sorted(edits):
            one = self.root.replace(edit.text)
            one.start_pos, one.end_pos = edit.start, edit.end
            made.append(one)
        if not made:
            return self.text
        start, end = span(self.root)  # the root leaves out white space around the module
        if any(edit.start < start or edit.end > end for edit in edits):
            raise Refused("ast-grep sees no code there")
        text = self.text[:start] + self.root.commit_edits(made) + self.text[end:]
        if text != splice(self.text, list(edits)):
            raise Refused("ast-grep would change more than asked for")
        return text


def splice(text: str, edits: Sequence[Edit], offset: int = 0) -> str:
    """A part of a text (which begins at `offset`) with edits made."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start - offset] + edit.text + text[edit.end - offset :]
    return text


def span(node: SgNode) -> Span:
    """Where a node of ast-grep begins and ends."""
    where = node.range()
    return where.start.index, where.end.index


def walk(node: SgNode) -> Iterator[SgNode]:
    """A node of ast-grep and all below it."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children())


def calls_outside(tree: ast.Module) -> Iterator[ast.Call]:
    """All calls that do not stand in an f-string."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Call):
            yield node
        pending += ast.iter_child_nodes(node)
