"""How a text names several things."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 3


def listed(names: Sequence[str], most: int = MOST) -> str:
    """Names as a sentence has them: `a`, `b` and `c`; where there are more than `most`, how many more."""
    shown = [f"`{name}`" for name in names[:most]]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
