"""What the code of a function reads beside its arguments: by name, with the line that reads it."""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass, field
from types import CodeType

from pytest_jitcache.places import is_library

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass
class Reads:
    """The names that a body reads, each with the first line on which it does.

    Attributes:
        globals: names looked up in the module.
        cells: names of enclosing functions.
        attributes: names looked up on any object, and strings that may be keys.
    """

    globals: dict[str, int] = field(default_factory=dict)
    cells: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)


@functools.lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """What a body reads, and the functions that it defines. Nothing for code of a library, but for its cells."""
    found = Reads()
    _add(found, code)
    if is_library(code.co_filename):
        found.globals.clear()
        found.attributes.clear()
    return found


def _add(found: Reads, code: CodeType) -> None:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        at = getattr(instruction, "line_number", None) or instruction.starts_line
        line = at if at is not None and at is not True and at is not False else line
        name = instruction.opname
        value = instruction.argval
        if isinstance(value, str):
            if name in _GLOBALS:
                found.globals.setdefault(value, line)
            elif name.startswith(_ATTRIBUTES) or name.startswith("LOAD_SUPER_ATTR") or name == "LOAD_CONST":
                found.attributes.setdefault(value, line)
            elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_FROM_DICT_OR_DEREF"):
                found.cells.setdefault(value, line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _add(found, inner)
