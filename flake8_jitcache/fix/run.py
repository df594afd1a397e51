"""One run of the fixer over files: read, repair, show or write, and count."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flake8_jitcache.codes import FIXABLE
from flake8_jitcache.findings import Finding
from flake8_jitcache.fix.diff import unified
from flake8_jitcache.fix.flake8_settings import BadConfiguration, Flake8Settings
from flake8_jitcache.fix.reports import FileReport, edits_between, written
from flake8_jitcache.fix.rounds import Mended, Outcome, repair
from flake8_jitcache.fix.source_file import SourceFile, Unreadable, write
from flake8_jitcache.prefilter import mentions_a_jit


@dataclass
class Run:
    """What was asked for, and what has come of it so far."""

    paths: Sequence[str]
    codes: tuple[str, ...] | None = None
    unsafe: bool = False
    write: bool = False
    diff: bool = False
    for_flake8: Sequence[str] = ()
    fixed: Counter[str] = field(default_factory=Counter)
    left: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)
    form: str = "text"
    reports: list[FileReport] = field(default_factory=list)

    def run(self) -> int:
        """Fix everything. Returns the exit status."""
        try:
            self.settings = Flake8Settings(self.for_flake8)
        except BadConfiguration as error:
            self._say(f"error: {error}")
            return 2
        if list(self.paths) == ["-"]:
            self._standard_input()
        else:
            self._files()
        self._summary()
        if self.form != "text":
            sys.stdout.write(written(self.form, self.reports, self.errors))
            sys.stdout.flush()
        return 2 if self.errors else 1 if self.left or (self.fixed and not self._changes) else 0

    @property
    def _changes(self) -> bool:
        """Whether what is fixed goes somewhere: into the files, or to standard output in place of standard input."""
        return self.write or (list(self.paths) == ["-"] and self._gives_text)

    @property
    def _gives_text(self) -> bool:
        """Whether standard input comes out again as text."""
        return not self.diff and self.form == "text"

    # ---------------------------------------------------------------- one text

    def _repair(self, path: str, text: str) -> Outcome | None:
        """Repair one text; None where there is nothing to do. Reports errors."""
        wanted = [code for code in FIXABLE if self._wants(code, path)]
        if not wanted or not mentions_a_jit([text], self.settings.options):
            return None

        def shown(of: str, finding: Finding) -> bool:
            return not self.settings.is_silenced(path, of, finding)

        try:
            return repair(text, self.settings.options, wanted, unsafe=self.unsafe, shown=shown, filename=path)
        except SyntaxError as error:
            self._error(path, f"Python can't parse it: {error.msg} (line {error.lineno})")
        except RecursionError:
            self._error(path, "is nested too deeply")
        except ValueError as error:
            self._error(path, f"Python can't parse it: {error}")
        except Exception as error:  # noqa: BLE001 - a fault of ours costs one file, not the run
            self._error(path, f"an internal error, please report it: {type(error).__name__}: {error}")
        return None

    def _wants(self, code: str, path: str) -> bool:
        return code in self.codes if self.codes is not None else self.settings.selects(code, path)

    def _record(self, path: str, before: str, outcome: Outcome) -> None:
        self.fixed += outcome.fixed
        self.left += len(outcome.left)
        edits = edits_between(before, outcome.text)
        self.reports.append(FileReport(path, edits, sorted(outcome.mended, key=_place), outcome.left))
        for left in outcome.left:
            self._say(f"{path}:{left.line}: {left.code} not fixed: {left.reason}")

    # ---------------------------------------------------------------- where from and where to

    def _standard_input(self) -> None:
        data = sys.stdin.buffer.read()
        name = self.settings.display_name
        try:
            source = SourceFile.decode(data)
        except Unreadable as error:
            self._error(name, str(error))
            source = None
        outcome = self._repair(name, source.text) if source is not None else None
        if outcome is not None and source is not None:
            self._record(name, source.text, outcome)
            if not self._gives_text:
                self._show(name, source.text, outcome.text)
                return
            data = source.encode(outcome.text)
        if self._gives_text:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def _files(self) -> None:
        paths = list(self.settings.files(self.paths))
        progress = Progress(len(paths))
        for path in paths:
            progress.step()
            try:
                source = SourceFile.decode(Path(path).read_bytes())
                outcome = self._repair(path, source.text)
                if outcome is None:
                    continue
                progress.clear()
                self._record(path, source.text, outcome)
                if outcome.text == source.text:
                    continue
                if self.write:
                    write(Path(path), source.encode(outcome.text))
                    self._say(f"{path}: fixed {_counted(outcome.fixed)}")
                else:
                    self._show(path, source.text, outcome.text)
            except (OSError, Unreadable, UnicodeEncodeError) as error:
                progress.clear()
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self._error(path, reason)
        progress.clear()

    # ---------------------------------------------------------------- output

    def _show(self, path: str, before: str, after: str) -> None:
        if self.form != "text":
            return
        text = unified(path, before, after, colour=_colours(sys.stdout))
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()

    def _summary(self) -> None:
        if not (self.fixed or self.left):
            return
        done = "fixed" if self._changes else "can be fixed"
        parts = [f"{self.fixed.total()} {done}" if self.fixed else "", f"{self.left} left" if self.left else ""]
        self._say(", ".join(filter(None, parts)))

    def _error(self, path: str, reason: str) -> None:
        self.errors.append((path, reason))
        self._say(f"error: {path}: {reason}")

    @staticmethod
    def _say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class Progress:
    """A line that counts the files, on a terminal and where there are many."""

    _MANY = 50

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = False
        self._last = time.monotonic()
        self._on = total >= self._MANY and sys.stderr.isatty()

    def step(self) -> None:
        """Count a file."""
        self._done += 1
        if self._on and time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            self._shown = True
            print(f"\r{self._done} of {self._total} files", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away, so that another can be written."""
        if self._shown:
            self._shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _place(one: Mended) -> tuple[int, int]:
    return one.line, one.column


def _counted(fixed: Counter[str]) -> str:
    return ", ".join(f"{code} ({count}x)" if count > 1 else code for code, count in sorted(fixed.items()))


def _colours(stream: object) -> bool:
    """Whether a stream shows colours: it is a terminal, and NO_COLOR and TERM do not say otherwise."""
    is_terminal = getattr(stream, "isatty", bool)()
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
