"""The conftest of a folder of random programs: writes for each what was counted and what pytest said."""

import json
import warnings
from pathlib import Path

import counting
import jax
import pytest

from pytest_jitcache import RetraceError

TOLD = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    TOLD.clear()
    TOLD.update(error=None, escaped=False, line=0, noise=[], crash="")
    record = counting.reset()
    with warnings.catch_warnings():
        yield
    TOLD["events"] = [(e.body, e.signature, e.step, e.turn, e.epoch) for e in record.events]
    TOLD["steps"] = sorted(record.steps)
    Path(item.path).with_suffix(".json").write_text(json.dumps(TOLD))
    jax.clear_caches()
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is None:
        return report
    error = call.excinfo.value
    if isinstance(error, RetraceError):
        TOLD["error"] = str(error)
        shown = [entry for entry in call.excinfo.traceback.filter(call.excinfo) if Path(entry.path) == item.path]
        TOLD["line"] = shown[-1].lineno + 1 if shown else 0
    elif isinstance(error, counting.Oops):
        TOLD["escaped"] = True
    else:
        TOLD["crash"] = str(report.longrepr)
    return report


def pytest_warning_recorded(warning_message):
    if warning_message.category.__name__ == "JitcacheWarning":
        TOLD["noise"].append(f"warned: {warning_message.message}")
