"""What a fix is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flake8_jitcache.findings import Finding
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.rules.lifetimes import Lifetime


@dataclass
class Fix:
    """The edits that fix one finding, and what has to hold for the meaning to stay. Without assumptions it is safe.

    defines: what it defines at module level, where another fix could use the same definition.
    """

    edits: list[Edit]
    assumptions: list[str] = field(default_factory=list)
    defines: str = ""

    def touches(self, other: Fix) -> bool:
        """Whether two fixes can't be made at once."""
        if self.defines and self.defines == other.defines:
            return True
        return any(mine.touches(theirs) for mine in self.edits for theirs in other.edits)


@dataclass
class Task:
    """One finding to fix: the text, the linter's answers, and the module-level names that other fixes have taken."""

    document: Document
    finding: Finding
    lifetime: Lifetime
    taken: set[str]


Planner = Callable[[Task], Fix]
"""Plans the fix of one finding. Raises Refused with the reason where there is none."""
