"""What a guard takes beside its functions: one place for the fixture, the mark and `traced_once`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypedDict, get_args

__tracebackhide__ = True  # for every frame of this module: a failure shows the user's lines only

Per = Literal["signature", "total", "definition"]


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
    check_captures: bool = False

    def __post_init__(self) -> None:
        _check_limit("max_traces", self.max_traces)
        if self.max_compiles is not None:
            _check_limit("max_compiles", self.max_compiles)
        if self.per not in get_args(Per):
            raise ValueError(f"per must be 'signature', 'total' or 'definition', got {self.per!r}.")
        if self.info is not None and not isinstance(self.info, str):
            raise TypeError(f"info must be a string, got {type(self.info).__name__}.")
        if not isinstance(self.check_captures, bool):
            raise TypeError(f"check_captures must be True or False, got {self.check_captures!r}.")

    @property
    def warm(self) -> bool:
        """Whether the functions stay warm: where nothing may be traced (compiled), that is what is to be shown."""
        return self.max_traces == 0 or self.max_compiles == 0


class Keywords(TypedDict, total=False):
    """The same options as keyword arguments, for type checkers."""

    max_traces: int
    per: Per
    max_compiles: int | None
    info: str | None
    check_captures: bool


NAMES = tuple(option.name for option in fields(Options))


def _check_limit(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__} ({value!r}).")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, got {value}.")
