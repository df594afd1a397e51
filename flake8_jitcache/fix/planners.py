"""The one table of which code is fixed by which module."""

from __future__ import annotations

from flake8_jitcache.fix import factories, hoist, methods, partials, wrap
from flake8_jitcache.fix.fixes import Planner
from flake8_jitcache.fix.makers import or_maker

PLANNERS: dict[str, Planner] = {
    "JIT101": or_maker(hoist.plan),
    "JIT102": or_maker(partials.plan),
    "JIT103": or_maker(hoist.plan),
    "JIT104": methods.plan,
    "JIT105": or_maker(wrap.plan),
    "JIT106": factories.plan,
    "JIT107": or_maker(wrap.plan),
}
