"""The hooks of a run with one of the options on: records go from the tests to the totals, and from there to the outputs.

Under xdist each worker records and judges its own tests; what it has seen rides on its reports, so that a worker that
crashes loses its unfinished test and nothing else.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jitcache.errors import RetraceError, StaleValueError
from pytest_jitcache.items import code_of, raise_in_test
from pytest_jitcache.suite import baseline, files, output_json, strict, summary, timeline
from pytest_jitcache.suite.jax_import import WhenImported
from pytest_jitcache.suite.options import Settings
from pytest_jitcache.suite.session import Payload, Session
from pytest_jitcache.suite.totals import Totals

if TYPE_CHECKING:
    from pytest_jitcache.suite.captures import SuiteCaptures

_CARGO = "jitcache"  # the attribute of a report, and the key of a worker's output


class SuitePlugin:
    """Registered by `pytest_jitcache.plugin` when the settings ask for anything."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.is_worker = hasattr(config, "workerinput")
        self.totals = Totals()
        self.session = Session(
            spans=bool(settings.timeline or settings.html), explain=settings.strict and config.get_verbosity() >= 2
        )
        self.captures: SuiteCaptures | None = None
        self.stale: list[dict[str, Any]] = []  # what has gone stale in the test that runs
        self.jax = WhenImported("jax", self._listen)
        self.began = time.perf_counter()
        self.accepted: baseline.Entries = {}
        if settings.strict and settings.baseline is not None and settings.baseline.exists():
            self.accepted = baseline.load(settings.baseline)
        self.collected: set[str] = set()  # node ids, of files as well as of tests
        self.narrowed = any("::" in arg for arg in config.args) or getattr(config.option, "lf", False)
        self.gone: set[str] = set()  # tests of the baseline that are no more
        self.judged: dict[str, Any] = {}
        self.told: list[str] = []
        self.outbox: list[Payload] = []
        self.unwritten: list[str] = []
        self.nodes: dict[str, float] = {}  # of the controller: workers that run, and since when
        self.jax.start()

    def _listen(self) -> None:
        """JAX has been imported."""
        self.session.listen()
        if self.settings.check_captures:
            from pytest_jitcache.suite.captures import SuiteCaptures

            self.captures = SuiteCaptures()
            self.captures.listen()

    # -- the run

    def pytest_report_header(self) -> list[str]:
        return [f"jitcache: {self.settings.header()}", *self._lost()]

    def _lost(self) -> list[str]:
        """What this JAX does not tell, each line once: in the head of the run, or at its end where JAX came later."""
        if not self.session.listening:
            return []
        from pytest_jitcache.jax import listening, names

        lines = [line for line in (*listening.missing(), *names.lost()) if line not in self.told]
        self.told += lines
        return [f"jitcache: not known: {line}" for line in lines]

    # -- the collection

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.collected.add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.passed:
            self.collected.add(report.nodeid)
        self.narrowed |= report.failed

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._close_test()
        if self.accepted and not self.narrowed:
            self.collected.update(item.nodeid for item in session.items)  # which a plugin may have renamed
            self.gone.update(baseline.gone(self.accepted, self.collected, self.config.rootpath))

    # -- one test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        self._close_test()  # what was seen since the last test is none of this one's
        self.session.enter(item.nodeid, "setup")
        if self.captures is not None:
            self.captures.enter(item.nodeid)
        try:
            result = yield
            strict.reason(item)  # a wrong mark is an error of its test
            return result
        finally:
            self.session.leave()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        __tracebackhide__ = True
        self.session.home = code_of(item)
        self.session.enter(item.nodeid, "call")
        raised = True
        try:
            result = yield
            raised = False
        finally:
            self.session.leave()
            if raised and (self.settings.strict or self.settings.strict_signatures):
                with contextlib.suppress(Exception):  # the test's own exception is the one to show
                    self._judge(item)
        if self.settings.strict or self.settings.strict_signatures:
            error = self._judge(item) or self._judge_signatures(item)
            if error is not None:
                raise_in_test(item, error)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        __tracebackhide__ = True
        self.session.enter(item.nodeid, "teardown")
        try:
            result = yield
        finally:
            self.session.leave()
            found = self.captures.look() if self.captures is not None else []
            self.stale += found
        if found and self.settings.strict:
            raise_in_test(item, StaleValueError("\n\n".join(one["text"] for one in found)))
        return result

    def _judge(self, item: pytest.Item) -> RetraceError | None:
        found = strict.findings(self.session, self.settings.allow) if self.settings.strict else []
        reason = strict.reason(item)
        if reason is not None:
            for group in found:
                for record in group:
                    record.allowed = True
            found = []
        missing = [] if reason is not None else self.session.cannot_judge()
        if missing:
            return strict.cannot_judge(missing)
        names = {id(group): baseline.name(group[-1].function, self.config.rootpath) for group in found}
        known = self.accepted.get(item.nodeid, set())
        new = [group for group in found if names[id(group)] not in known]
        self.judged = {"retraced": sorted(names.values()), "allowed": reason}
        return strict.error(new, self.session.explained) if new and not self.settings.update_baseline else None

    def _judge_signatures(self, item: pytest.Item) -> RetraceError | None:
        limit = self.settings.strict_signatures
        if not limit or strict.reason(item) is not None or self.settings.update_baseline:
            return None
        return strict.many_signatures(self.session, limit, self.settings.allow)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call":
            self.judged["outcome"] = _outcome(report)
        elif not report.passed:
            self.judged.setdefault("outcome", _outcome(report))
        if call.when == "teardown":
            self._close_test()
        return report

    def _close_test(self) -> None:
        payload = self.session.flush(anyway=bool(self.stale))
        judged, self.judged = {**self.judged, **({"stale": self.stale} if self.stale else {})}, {}
        self.stale = []
        if payload is not None:
            self.outbox.append({**payload, **judged})

    # -- from the tests to the totals

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.is_worker:
            if self.outbox:
                setattr(report, _CARGO, self.outbox)
                self.outbox = []
            return
        for payload in report.__dict__.pop(_CARGO, ()):
            self.totals.add(payload, getattr(report, "worker_id", ""))
        self._take()

    def _take(self) -> None:
        for payload in self.outbox:
            self.totals.add(payload)
        self.outbox = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Of the controller: a worker may run in another folder."""
        settings = self.settings
        paths = {
            "json": settings.json,
            "timeline": settings.timeline,
            "html": settings.html,
            "baseline": settings.baseline,
        }
        node.workerinput["jitcache_paths"] = {name: str(path) for name, path in paths.items() if path is not None}
        self.nodes[node.gateway.id] = time.perf_counter()
        self.totals.workers += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Of the controller: what a worker had left, which is nothing where it crashed. An interrupt tells it twice."""
        began = self.nodes.pop(node.gateway.id, None)
        if began is None:
            return
        output = getattr(node, "workeroutput", None) or {}
        left = output.get(_CARGO, {})
        self.totals.wall += left.get("wall", time.perf_counter() - began)
        self.gone.update(left.get("gone", ()))
        for payload in left.get("payloads", ()):
            self.totals.add(payload, node.gateway.id)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.jax.stop()
        if self.captures is not None:
            self.stale += self.captures.look(everything=True)
        self._close_test()
        now = time.perf_counter()
        wall = now - self.began
        if self.is_worker:
            left = {"payloads": self.outbox, "wall": wall, "gone": sorted(self.gone)}
            self.config.workeroutput[_CARGO] = left  # type: ignore[attr-defined]
            return
        self._take()
        if self.totals.workers:
            self.totals.wall += sum(now - began for began in self.nodes.values())
            self.nodes = {}
        else:
            self.totals.wall = wall
        self._write()
        if self.unwritten and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.unwritten and getattr(self.config.option, "no_summary", True):
            print("", *(f"jitcache: {line}" for line in self.unwritten), sep="\n", file=sys.stderr)

    def _write(self) -> None:
        settings = self.settings
        outputs = [(settings.json, output_json.render), (settings.timeline, timeline.render), (settings.html, _page)]
        for path, render in outputs:
            if path is not None:
                try:
                    files.write(path, render(self.totals))
                except OSError as error:
                    self.unwritten.append(f"{path} was not written: {error.strerror or error}")
        if settings.baseline is not None and settings.update_baseline:
            try:
                baseline.save(settings.baseline, baseline.updated(self.accepted, self._retraced(), self._ran()))
            except OSError as error:
                self.unwritten.append(f"{settings.baseline} was not written: {error.strerror or error}")

    def _retraced(self) -> baseline.Entries:
        found: baseline.Entries = {}
        for payload in self.totals.payloads:
            if payload.get("retraced"):
                found.setdefault(payload["test"], set()).update(payload["retraced"])
        return found

    def _ran(self) -> set[str]:
        ended = ("passed", "xpassed")
        ran = {p["test"] for p in self.totals.payloads if p.get("outcome") in ended or p.get("retraced")}
        return ran | self.gone

    # -- the end

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.config.option.no_summary:
            return
        if self.settings.summary:
            summary.show(terminalreporter, self.totals, self.settings.summary)
        stale = (
            baseline.stale(self.accepted, self._retraced(), self._ran()) if not self.settings.update_baseline else []
        )
        summary.stale_values(terminalreporter, self.totals)
        for line in self._lost():
            terminalreporter.write_line(line, yellow=True)
        summary.notes(terminalreporter, self.settings, stale, self.unwritten, self.totals)


def _page(totals: Totals) -> str:
    from pytest_jitcache import html

    return html.render(output_json.document(totals))


def _outcome(report: pytest.TestReport) -> str:
    """How a phase of a test ended, in the words of pytest's last line."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return "error" if report.failed and report.when != "call" else report.outcome
