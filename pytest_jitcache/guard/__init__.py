"""`traced_once`, the guard: what it takes, how it watches, counts and judges, and its forms."""

from __future__ import annotations

from pytest_jitcache.guard import watch
from pytest_jitcache.guard.forms import holders, traced_once
from pytest_jitcache.guard.options import NAMES, Options, Per
from pytest_jitcache.guard.record import TraceRecord
from pytest_jitcache.guard.watch import Guard

__all__ = ["NAMES", "Guard", "Options", "Per", "TraceRecord", "holders", "traced_once", "watch"]
