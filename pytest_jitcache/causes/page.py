"""The page of all causes, as `python -m pytest_jitcache causes` prints it.

`causes.md` holds, for each row of the table, what the guard really says of its example. A test runs them all.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from importlib.resources import files

from pytest_jitcache.causes.table import CAUSES, PRELUDE

WIDTH = 80


def main(words: Sequence[str]) -> int:
    """Print the sections whose heading has all the words; the whole page where none is given.

    Returns the exit status: 2 where no section has them.
    """
    head, *sections = page().split("\n## ")
    found = [s for s in sections if all(word.lower() in s.partition("\n")[0].lower() for word in words)]
    if not found:
        print(f"no cause {' '.join(words)!r}; the causes are:", file=sys.stderr)
        print("\n".join(f"  {title}" for title in sorted({c.title for c in CAUSES.values()})), file=sys.stderr)
        return 2
    print("\n## ".join([head, *found] if not words else ["", *found]).strip())
    return 0


def page() -> str:
    """The text of the page, in Markdown."""
    return files("pytest_jitcache.causes").joinpath("causes.md").read_text(encoding="utf-8")


def render(failures: dict[str, str]) -> str:
    """The page, from the table and from what the guard says of each example.

    Args:
        failures: the name of each cause that has an example, and the text of the failure that it ends with.
    """
    intro = (
        "Why a function was traced or compiled again, as `assert_traced_once` says it, in the order in which it looks. "
        "Each example is a whole program after these lines, and under it stands what the guard says of it:"
    )
    parts = [
        "# The causes of a retrace",
        textwrap.fill(intro, WIDTH),
        f"```python\n{PRELUDE.strip()}\n```",
    ]
    for name, cause in CAUSES.items():
        parts.append(f"## {cause.title} ({name})" if cause.title != name else f"## {cause.title}")
        parts.append(textwrap.fill(f"Looks at {cause.looks_at}.", WIDTH))
        if cause.example:
            parts.append(f"```python\n{cause.example.strip()}\n```")
            parts.append(f"```text\n{_narrow(failures[name])}\n```")
        else:
            parts.append(textwrap.fill(f"{cause.why} {cause.fix}", WIDTH))
        if cause.codes:
            parts.append(f"The linter finds it as {' or '.join(cause.codes)}.")
    return "\n\n".join(parts) + "\n"


def _narrow(failure: str) -> str:
    """The text with no line longer than the page is wide."""
    lines: list[str] = []
    for block in _blocks(failure):
        indent = " " * 5 if block.startswith(("why:", "fix:")) else " " * (len(block) - len(block.lstrip()) + 4)
        lines += textwrap.wrap(
            block, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def _blocks(failure: str) -> list[str]:
    """The lines of a failure; what was wrapped under `why:` and `fix:` is one line again."""
    blocks: list[str] = []
    for line in failure.splitlines():
        wrapped = line.startswith("     ") and line[5:6].strip() and blocks and blocks[-1].startswith(("why:", "fix:"))
        if wrapped and not line.startswith(("     If each", "     And then")):
            blocks[-1] += " " + line.strip()
        else:
            blocks.append(line)
    return blocks
