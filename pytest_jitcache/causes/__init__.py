"""Why a function was traced (or compiled) again: the table of causes, the comparison that chooses, and the words."""

from __future__ import annotations

from pytest_jitcache.causes.compare import Difference, compare
from pytest_jitcache.causes.table import CAUSES, Cause
from pytest_jitcache.causes.words import explain

__all__ = ["CAUSES", "Cause", "Difference", "compare", "explain"]
