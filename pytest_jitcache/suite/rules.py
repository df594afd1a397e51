"""From the cause of a retrace to the code of the static rule (`flake8_jitcache`) that finds it in the source."""

from __future__ import annotations

from pytest_jitcache.causes import Difference
from pytest_jitcache.recorder import Trace

_KINDS = {
    "partial": "JIT102",
    "bound method": "JIT104",
    "function": "JIT103",
    "nested function": "JIT103",
    "lambda": "JIT101",
}


def rule(trace: Trace, difference: Difference) -> str | None:
    """The code of the rule, or None where reading the source can't find it."""
    if _made_in_test(trace):
        return None  # the linter takes a test for code that runs once
    if difference.cause == "body":
        return "JIT401"
    if difference.cause == "static made anew":
        return "JIT304"
    if difference.cause != "function":
        return None
    outer = next((kind for kind in trace.kinds if kind != "jit"), "function")
    code = _KINDS.get(outer, "JIT105")
    if code in ("JIT101", "JIT103") and _made_elsewhere(trace):
        return "JIT106"
    return code


def _made_in_test(trace: Trace) -> bool:
    around = trace.qualname.split(".<locals>.")[:-1] or [
        trace.call_site.function if trace.call_site is not None else ""
    ]
    return any(part.rpartition(".")[2].startswith(("test", "setUp")) for part in around)


def _made_elsewhere(trace: Trace) -> bool:
    """Whether the function is called by another one than the one that makes it: it is the product of a factory."""
    maker = trace.qualname.replace(".<locals>", "").rpartition(".")[0]
    site = trace.call_site
    if not maker or site is None:
        return False
    return site.function.rpartition(".")[2] != maker.rpartition(".")[2]
