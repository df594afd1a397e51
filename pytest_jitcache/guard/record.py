"""The traces that a guard has counted, as it hands them to the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from pytest_jitcache.recorder import Trace


class TraceRecord(Sequence[Trace]):
    """The traces that a guard has counted, in the order in which they ended. Stays readable after a failure.

    Attributes:
        compiles: the XLA compiles of the guarded functions, in the same form. Filled where `max_compiles` is given.
    """

    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self.compiles: list[Trace] = []

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trace]: ...
    def __getitem__(self, index: int | slice) -> Trace | list[Trace]:
        return self._traces[index]

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(tuple(self._traces))

    def __repr__(self) -> str:
        inner = ", ".join(f"{t.name} at {t.call_site}" for t in self._traces[:4])
        return f"<{len(self)} trace{'' if len(self) == 1 else 's'}{': ' + inner if inner else ''}>"

    def __str__(self) -> str:
        return "\n".join(f"{t} at {t.call_site}" for t in self._traces) or "no traces"
