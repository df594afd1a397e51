"""The one table of which code is fixed by which module."""

from __future__ import annotations

from flake8_jitcache.fix import factories, hoist, methods, partials, wrap
from flake8_jitcache.fix.fixes import Planner

PLANNERS: dict[str, Planner] = {
    "JIT101": hoist.plan,
    "JIT102": partials.plan,
    "JIT103": hoist.plan,
    "JIT104": methods.plan,
    "JIT105": wrap.plan,
    "JIT106": factories.plan,
    "JIT107": wrap.plan,
}
