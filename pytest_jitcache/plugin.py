"""What pytest loads. Light: JAX, and the modules that need it, are imported when a guard is used and not before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_jitcache.guard import Guard, traced_once

MARK = "traced_once"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{MARK}("module.function", ..., max_traces=1, per="signature", max_compiles=None, info=None): '
        "the call of the test traces each of the functions at most once per signature; without a function, everything "
        "that is traced in it.",
    )


@pytest.fixture(scope="session")
def assert_traced_once(request: pytest.FixtureRequest) -> Callable[..., traced_once]:
    """Assert that functions are traced at most once for each signature.

    `step = assert_traced_once(train_step)` wraps a function and judges at the call that retraces;
    `with assert_traced_once(train_step) as traces:` judges when the block ends; without a function the block counts
    everything that is traced in it. See `pytest_jitcache.traced_once` for the arguments.
    """
    from pytest_jitcache import guard, report

    report.verbosity = request.config.get_verbosity()
    return guard.traced_once
