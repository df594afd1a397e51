"""Unified diffs, coloured on a terminal."""

from __future__ import annotations

from difflib import unified_diff

from flake8_jitcache.fix.source_file import LINE_END

_COLOURS = {"---": "\x1b[1m", "+++": "\x1b[1m", "@@": "\x1b[36m", "-": "\x1b[31m", "+": "\x1b[32m"}


def unified(path: str, before: str, after: str, *, colour: bool) -> str:
    """The difference between two texts of a file, as `git apply` takes it."""
    name = path.replace("\\", "/").removeprefix("./")
    lines = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(_painted(line) if colour else _ended(line) for line in lines)


def _lines(text: str) -> list[str]:
    ends = [match.end() for match in LINE_END.finditer(text)]
    lines = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    last = text[ends[-1] :] if ends else text
    return [*lines, last] if last else lines


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"


def _painted(line: str) -> str:
    colour = next((c for start, c in _COLOURS.items() if line.startswith(start)), "")
    if not colour:
        return _ended(line)
    body = line.rstrip("\r\n")
    return f"{colour}{body}\x1b[0m" + _ended(line)[len(body) :]
