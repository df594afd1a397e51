"""What a guard raises and what it warns of."""

from __future__ import annotations


class RetraceError(AssertionError):
    """A guarded function was traced or compiled more often than allowed, or the guard could not judge it.

    Attributes:
        traces: the record of the guard that raised, readable like the `traces` of the block form.
    """

    def __init__(self, message: str, traces: object = None) -> None:
        super().__init__(message)
        self.traces = traces
        self.line = 0  # of the test, where one is to blame


class JitcacheWarning(UserWarning):
    """A guard saw nothing that it could judge, or lost something that it should have seen."""
