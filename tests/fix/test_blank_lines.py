"""A file that the formatter is content with has no blank line too many or too few after a fix."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_makers import SAFE, UNSAFE
from test_meaning import FIXTURES, Fixture, fix

ALL = [*FIXTURES, *SAFE, *UNSAFE]


def formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=320", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def blank_lines(text: str) -> list[tuple[int, str]]:
    """Each line of code, and how many blank lines stand above it; without what only joins or splits lines."""
    found, blank = [], 0
    for line in text.splitlines():
        if not line.strip():
            blank += 1
            continue
        found.append((blank, line.split("(")[0]))
        blank = 0
    return [one for one in found if one[0]]


@pytest.mark.parametrize("fixture", ALL, ids=[fixture.name for fixture in ALL])
def test_blank_lines_around_what_moved_are_those_of_the_formatter(fixture: Fixture) -> None:
    before = formatted(fixture.text)
    after = fix(before, unsafe=True).text
    assert after != before
    assert blank_lines(after) == blank_lines(formatted(after))
