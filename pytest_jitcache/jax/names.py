"""The private names of JAX, and what is lost where one of them is missing."""

from __future__ import annotations

import sys
from typing import Any

__tracebackhide__ = True


def module(name: str) -> Any:
    try:
        __import__(name)
    except Exception:
        return None
    return sys.modules.get(name)


_lost: list[str] = []


def lose(line: str) -> None:
    """Note what this version of JAX does not tell."""
    if line not in _lost:
        _lost.append(line)


def lost() -> list[str]:
    """What this version of JAX does not tell, one line each."""
    return list(_lost)
