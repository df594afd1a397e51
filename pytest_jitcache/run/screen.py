"""What a watched program's summary is written to: standard error, with colours where that is a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

_COLOURS = {"bold": "1", "red": "31", "yellow": "33", "cyan": "36"}


class Screen:
    """Writes lines, and keeps one at the bottom that is written over.

    Args:
        stream: standard error as it was when the program began; the program may put another in its place.
        verbosity: below 0 for less.
    """

    def __init__(self, stream: TextIO | None = None, verbosity: int = 0) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self.verbosity = verbosity
        self.is_terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self.hasmarkup = self.is_terminal and "NO_COLOR" not in os.environ
        self._status = ""

    def write(self, content: str, **markup: bool) -> None:
        codes = [_COLOURS[name] for name, on in markup.items() if on and name in _COLOURS]
        if codes and self.hasmarkup:
            content = f"\x1b[{';'.join(codes)}m{content}\x1b[0m"
        try:
            self._stream.write(content)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads any more
            return

    def write_line(self, line: str, **markup: bool) -> None:
        status, self._status = self._status, ""
        if status:
            self.write("\r\x1b[K")
        self.write(line, **markup)
        self.write("\n")
        if status:
            self.status(status)

    def write_sep(self, sep: str, title: str) -> None:
        width = min(shutil.get_terminal_size().columns, 100)
        side = sep * max(3, (width - len(title) - 2) // 2)
        self.write_line(f"{side} {title} {side}", bold=True)

    def status(self, text: str) -> None:
        """Show a line at the bottom, of a terminal alone; an empty one takes it away."""
        if self.is_terminal and (text or self._status):
            self.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
            self._status = text
