"""What a guard raises and what it warns of."""

from __future__ import annotations

from typing import Any


class GuardError(AssertionError):
    """What a guard found.

    Attributes:
        traces: the record of the guard that raised, readable like the `traces` of the block form.
        verbosity: how much `str` gives: below 0 the first line, from 2 on everything. Set by pytest for its report.
    """

    def __init__(self, message: str, traces: object = None, details: str = "") -> None:
        super().__init__(message)
        self.traces = traces
        self.verbosity = 0
        self.line = 0  # of the test, where one is to blame
        self.place = ""  # of the call that was traced too often
        self._details = details

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        if self.verbosity < 0:
            return message.partition("\n")[0] + (f" at {self.place}" if self.place else "")
        return f"{message}\n\n{self._details}" if self.verbosity >= 2 and self._details else message

    def __reduce__(self) -> tuple[Any, ...]:
        """Across processes the texts travel, the record does not: it refers to code of this one."""
        seen = {"verbosity": self.verbosity, "line": self.line, "place": self.place}
        return type(self), (*self.args[:1], None, self._details), seen

    @property
    def short(self) -> str:
        """One line that begins with the cause and the place, for where a line is cut at its end."""
        first = str(self.args[0]).partition("\n")[0] if self.args else ""
        what, colon, cause = first.partition(": ")
        return f"{cause} at {self.place}: {what}" if colon and self.place else first


class RetraceError(GuardError):
    """A guarded function was traced or compiled more often than allowed, or the guard could not judge it."""

    __module__ = "pytest_jitcache"  # where it is imported from, and so how a failure names it


class StaleValueError(GuardError):
    """A warm function keeps a value that it captured when it was traced, and that is another one now."""

    __module__ = "pytest_jitcache"


class JitcacheWarning(UserWarning):
    """A guard saw nothing that it could judge, or lost something that it should have seen."""

    __module__ = "pytest_jitcache"
