"""The one table of which code is fixed by which module."""

from __future__ import annotations

from flake8_jitcache.fix import hoist
from flake8_jitcache.fix.fixes import Planner

PLANNERS: dict[str, Planner] = {
    "JIT101": hoist.plan,
    "JIT103": hoist.plan,
}
