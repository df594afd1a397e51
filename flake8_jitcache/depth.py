"""Deep recursion, for the rare file whose nesting or whose chain of aliases is deeper than Python's default allows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Enough for chains of 50,000 names. The stack is reserved, not used: a file that needs it touches a part of it.
_FRAMES = 500_000
_STACK = 1 << 29


def with_deep_stack(work: Callable[[], T]) -> T:
    """The result of `work`, run again with a deep stack where Python's own is not deep enough.

    Raises what `work` raises, a RecursionError too where even that is not enough.
    """
    try:
        return work()
    except RecursionError:
        pass
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            errors.append(error)

    limit, stack = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_FRAMES)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
