"""`python -m flake8_jitcache explain`: the page of a code, or the list of all codes."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from importlib.resources import files

from flake8_jitcache.codes import CODES, Code
from flake8_jitcache.terminal import columns, fitted


def main(arguments: Sequence[str]) -> int:
    """Print the pages of the given codes (or names of rules), in that order; the list of all codes where none is given.

    Returns the exit status: 2 where one of them does not exist, and then prints no page.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        print("usage: python -m flake8_jitcache explain [CODE ...]")
        return 0
    codes = [find(argument) for argument in arguments]
    for argument, code in zip(arguments, codes, strict=True):
        if code is None:
            print(f"no code {argument!r}; allowed are {', '.join(CODES)} and their names", file=sys.stderr)
    if None in codes:
        return 2
    shown = "\n".join(fitted(page(code.code), columns()) for code in codes if code is not None) if codes else overview()
    print(shown, end="")
    return 0


def find(word: str) -> Code | None:
    """The code that a word means: `JIT201`, in any case, or `captured-global-rebound`."""
    named = (code for code in CODES.values() if code.name == word.lower())
    return CODES.get(word.upper()) or next(named, None)


def page(code: str) -> str:
    """The text of a code's page, in Markdown."""
    return files("flake8_jitcache").joinpath("pages", f"{code}.md").read_text(encoding="utf-8")


def overview() -> str:
    """Each code with its name and what it finds."""
    width = max(len(code.name) for code in CODES.values())
    indent = " " * (len("JIT101") + 2 + width + 2)
    return "".join(
        textwrap.fill(
            f"{code.code}  {code.name:<{width}}  {code.summary}{'' if code.default else ' (off by default)'}",
            columns(),
            subsequent_indent=indent,
        )
        + "\n"
        for code in CODES.values()
    )
