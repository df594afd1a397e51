"""What pytest loads. Light: JAX, and the modules that need it, are imported when a guard is used and not before."""

from __future__ import annotations

import functools
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jitcache.errors import GuardError, JitcacheWarning
from pytest_jitcache.fixture import AssertTracedOnce
from pytest_jitcache.suite import options

if TYPE_CHECKING:
    from pytest_jitcache.guard import traced_once

MARK = "traced_once"


class _Made:
    """The guards that a test has made, and those of the fixtures of a wider scope that are being set up for it."""

    def __init__(self) -> None:
        self.test: list[traced_once[..., Any]] = []
        self.fixtures: list[list[traced_once[..., Any]]] = []


_made = [_Made()]  # the last is of the test that runs; a test may run pytest itself, and so tests inside it


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """`--jitcache-summary tests/`: what follows is a path, and no number of functions."""
    if options.separate_summary(args):
        early_config.known_args_namespace = parser.parse_known_args(args)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{MARK}("module.function", ..., max_traces=1, per="signature", max_compiles=None, check_captures=False, info=None): '
        "the call of the test traces each of the functions at most once per signature; without a function, everything "
        "that is traced in it.",
    )
    config.addinivalue_line("markers", 'jitcache_allow(reason="..."): the test may retrace under --jitcache-strict.')
    settings = options.read(config)
    if settings.on:
        from pytest_jitcache.suite.plugin import SuitePlugin

        config.pluginmanager.register(SuitePlugin(config, settings), "jitcache-suite")


@pytest.fixture(scope="session")
def assert_traced_once(pytestconfig: pytest.Config) -> AssertTracedOnce:
    """Assert that functions are traced at most once for each signature.

    `step = assert_traced_once(train_step)` wraps a function and judges at the call that retraces;
    `with assert_traced_once(train_step) as traces:` judges when the block ends; without a function the block counts
    everything that is traced in it. See `pytest_jitcache.traced_once` for the arguments.
    """
    return _load(pytestconfig).traced_once  # type: ignore[no-any-return]


def _load(config: pytest.Config) -> Any:
    from pytest_jitcache import guard

    guard.watch.explain = config.get_verbosity() >= 2

    if _Tests not in guard.holders:
        guard.holders.append(_Tests)
    return guard


class _Tests:
    """Keeps what the test, or the fixture that is being set up, has made."""

    @staticmethod
    def keep(one: traced_once[..., Any]) -> None:
        here = _made[-1]
        (here.fixtures[-1] if here.fixtures else here.test).append(one)

    @staticmethod
    def let_go(one: traced_once[..., Any]) -> None:
        for made in (_made[-1].test, *_made[-1].fixtures):
            made[:] = [other for other in made if other is not one]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    _made.append(_Made())
    try:
        return (yield)
    finally:
        _made.pop()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """A guard that a fixture of a wider scope makes lives as long as that fixture does."""
    if fixturedef.scope == "function" or fixturedef.argname == "assert_traced_once":
        return (yield)
    made: list[traced_once[..., Any]] = []
    here = _made[-1]
    here.fixtures.append(made)
    try:
        return (yield)
    finally:
        here.fixtures.pop()
        for one in made:
            fixturedef.addfinalizer(functools.partial(one._close))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """The call phase is the block of the marker form, and the end of the wraps that the test has made."""
    __tracebackhide__ = True
    if item.get_closest_marker(MARK) is None and "pytest_jitcache.guard" not in sys.modules:
        return (yield)
    _load(item.config)
    from pytest_jitcache.items import raise_in_test
    from pytest_jitcache.marker import blocks_of

    here = _made[-1]
    blocks = blocks_of(item, item.iter_markers(MARK))
    for block in blocks:
        block.start()
    try:
        result = yield
    except BaseException:
        for block in blocks:
            block._stop()
        for one in here.test:
            one._stop()
        raise
    finally:
        wraps, here.test = here.test, []
    for block in blocks:
        block._stop()
    try:
        for block in blocks:
            block.judge()
        for one in wraps:
            one._close()
    except (GuardError, JitcacheWarning) as error:
        raise_in_test(item, error)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, object, object]:
    """`-q` shows the first line of a verdict, `-vv` all that is known; JUnit and the short summary one line, cause first."""
    error = call.excinfo.value if call.excinfo is not None else None
    if not isinstance(error, GuardError):
        return (yield)
    error.verbosity = item.config.get_verbosity()
    report: Any = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        first = str(error.args[0]).partition("\n")[0] if error.args else ""
        shown = crash.message.partition("\n")[0]  # of another error, where a unittest case failed by itself as well
        crash.message = error.short if first and first in shown else shown
    return report


def pytest_runtest_teardown() -> None:
    _made[-1].test.clear()
