"""What a guard takes beside its functions: one place for the fixture, the mark and `traced_once`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only

Per = Literal["signature", "total"]


@dataclass(frozen=True)
class Options:
    """The options of one guard, checked. `traced_once` documents each.

    Raises:
        TypeError, ValueError: a value is wrong.
    """

    max_traces: int = 1
    per: Per = "signature"
    max_compiles: int | None = None
    info: str | None = None

    def __post_init__(self) -> None:
        _check_limit("max_traces", self.max_traces)
        if self.max_compiles is not None:
            _check_limit("max_compiles", self.max_compiles)
        if self.per not in ("signature", "total"):
            raise ValueError(f"per must be 'signature' or 'total', got {self.per!r}.")
        if self.info is not None and not isinstance(self.info, str):
            raise TypeError(f"info must be a string, got {type(self.info).__name__}.")


NAMES = tuple(option.name for option in fields(Options))


def _check_limit(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__} ({value!r}).")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")
