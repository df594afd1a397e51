"""Markdown as a terminal shows it: paragraphs, lists and tables within its width, code as it is."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence

WIDEST = 100


def columns() -> int:
    """The width to write for: that of the terminal (80 where there is none), at most `WIDEST`."""
    return min(shutil.get_terminal_size().columns, WIDEST)


def fitted(markdown: str, width: int) -> str:
    """A page of Markdown with no line longer than `width`, but for code and for words that are longer by themselves."""
    return "\n".join(line for block in _blocks(markdown) for line in _shown(block, width)) + "\n"


def _blocks(markdown: str) -> Iterator[list[str]]:
    """The blocks of a page: a fence, a table, a list item, a paragraph, an empty line."""
    block: list[str] = []
    fenced = False
    for line in markdown.rstrip("\n").split("\n"):
        begins = line.startswith("```")
        if fenced:
            block.append(line)
            if begins:
                yield block
                block, fenced = [], False
            continue
        own = not line.strip() or line.startswith(("#", "- ", "    ")) or begins
        table = line.startswith("|")
        if block and (own or table != block[-1].startswith("|")):
            yield block
            block = []
        block.append(line)
        fenced = begins
        if not line.strip() or line.startswith(("#", "    ")):
            yield block
            block = []
    if block:
        yield block


def _shown(block: Sequence[str], width: int) -> list[str]:
    first = block[0]
    if not first.strip() or first.startswith(("#", "```", "    ")):
        return list(block)
    if first.startswith("|"):
        return _table([_cells(row) for row in block if not re.fullmatch(r"[|\s:-]+", row)], width)
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"\1: \2", " ".join(line.strip() for line in block))
    return _wrapped(text, width, "", "  " if first.startswith("- ") else "")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """In columns where they fit; else each row as its first cell with the others under it, by the names of their columns."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
        return [lines[0], "  ".join("-" * size for size in widths), *lines[1:]]
    head, *body = rows
    lines = []
    for row in body:
        lines += _wrapped(row[0], width, "- ", "  ")
        for name, cell in zip(head[1:], row[1:], strict=True):
            lines += _wrapped(f"{name}: {cell}", width, "  ", "    ")
    return lines


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
