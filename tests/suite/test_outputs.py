"""The files: `--jitcache-json`, `--jitcache-timeline`, `--jitcache-baseline`; and what is left of runs that end early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from pytest_jitcache.jax.listening import announces_bodies

SOURCE = """
def test_first():
    for _ in range(3): reverse(jnp.arange(8))
def test_second():
    step = jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, y), 0.0, x))
    for n in (1, 2, 1, 2): step(jnp.ones(n))
def test_third():
    jnp.ones((7, 3)).sum()
"""

OUTPUTS = ("--jitcache-json=run.json", "--jitcache-timeline=timeline.json")


def counts(run) -> dict[str, tuple[int, int, int, dict[str, int]]]:
    return {f["qualname"]: (f["traces"], f["signatures"], f["compiles"], f["tests"]) for f in run.json["functions"]}


def test_json(suite):
    run = suite(SOURCE, *OUTPUTS)
    document = run.json
    assert (document["schema"], document["version"]) == ("jitcache-run", 1)
    function = run.function("reverse.<lambda>")
    assert (function["traces"], function["signatures"], function["wasted_traces"], function["compiles"]) == (3, 1, 2, 3)
    assert function["file"] == str(suite.folder / "test_it.py")
    assert function["line"] == 7
    [cause] = function["causes"]
    assert cause.pop("fix").startswith("Jit a function defined at module level")
    assert cause == {"cause": "new function object", "rule": None, "traces": 2}
    first = next(test for test in document["tests"] if test["test"] == "test_it.py::test_first")
    assert first["outcome"] == "passed"
    assert [record["signature"] for record in first["records"]] == ["b: i32[8]"] * 3
    assert first["records"][0]["call_site"] == {"file": function["file"], "line": 7, "function": "reverse"}


def test_seconds_of_the_stages_add_up(suite):
    document = suite(SOURCE, *OUTPUTS).json
    totals = document["totals"]
    assert 0 < sum(totals["seconds"].values()) < totals["wall_seconds"]
    everything = document["functions"] + document["jax_operations"]
    for stage, seconds in totals["seconds"].items():
        assert sum(one["seconds"][stage] for one in everything) == pytest.approx(seconds)
    records = [record for test in document["tests"] for record in test["records"]]
    assert sum(record["compiles"] for record in records) == sum(f["compiles"] for f in document["functions"])


@pytest.mark.skipif(not announces_bodies(), reason="this JAX does not announce bodies that are traced inside a trace")
def test_inner_trace_is_told_apart(suite):
    run = suite(SOURCE, *OUTPUTS)
    assert run.function("test_second.<lambda>")["inlined"] == 0
    assert run.function("test_second.<lambda>.<lambda>")["inlined"] == 2


def test_collection_and_the_time_between_tests_are_charged_to_no_test(suite):
    suite.write(
        "conftest.py",
        """
        def pytest_runtest_logstart(nodeid):
            import jax
            if nodeid.endswith("test_second"): jax.jit(lambda x: x + 1)(1.0)
        """,
    )
    run = suite("reverse(jnp.arange(8))\n" + SOURCE, *OUTPUTS)
    tests = [(t["test"], [r["phase"] for r in t["records"]]) for t in run.json["tests"]]
    assert tests[:3] == [
        (None, ["collection"]),
        ("test_it.py::test_first", ["call"] * 3),
        (None, ["between tests"]),
    ]
    spans = json.loads((suite.folder / "timeline.json").read_text())["traceEvents"]
    collected = {e["args"]["test"] for e in spans if e["ph"] == "X" and e["args"]["phase"] == "collection"}
    assert collected == {""}


@pytest.mark.parametrize("args", [[], ["--no-summary"]], ids=["with summary", "without"])
def test_file_that_cannot_be_written_is_one_line_and_fails_the_run(suite, args):
    suite.write("file", "")
    run = suite(SOURCE, "--jitcache-json=file/run.json", "--jitcache-timeline=timeline.json", *args)
    assert run.status == 1
    assert run.output.count("jitcache: ") == 2  # the header is one
    assert "run.json was not written: " in run.output
    assert (suite.folder / "timeline.json").exists()


def test_outcomes(suite):
    run = suite(
        """
        def test_passed(): pass
        def test_failed(): assert 0
        def test_skipped(): pytest.skip()
        def test_error(missing): pass
        @pytest.mark.xfail
        def test_xfailed(): assert 0
        @pytest.mark.xfail(run=False)
        def test_xfailed_unrun(): assert 0
        @pytest.mark.xfail
        def test_xpassed(): pass
        @pytest.mark.xfail(strict=True)
        def test_failed_strictly(): pass
        """,
        "--jitcache-json=run.json",
    )
    for test in run.json["tests"]:
        assert test["test"] is None or test["test"].startswith(f"test_it.py::test_{test['outcome']}")
    assert len(run.json["tests"]) >= 8


def test_no_temporary_file_is_left(suite):
    suite(SOURCE, *OUTPUTS)
    assert {p.name for p in suite.folder.iterdir()} == {"pytest.ini", "run.json", "test_it.py", "timeline.json"}


# --- timeline


def test_timeline_is_in_the_trace_event_format(suite):
    """As its specification has it: complete events with `ts` and `dur`, metadata events, and proper nesting on each thread."""
    suite(SOURCE, *OUTPUTS)
    document = json.loads((suite.folder / "timeline.json").read_text())
    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"X", "M"}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [event for event in events if event["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in spans} == named
    assert {event["cat"] for event in spans} == {"test", "trace", "lower", "compile"}
    for event in spans:
        assert event["ts"] >= 0
        assert event["dur"] >= 0
    for thread in named:
        open_until: list[float] = []
        on_thread = [e for e in spans if (e["pid"], e["tid"]) == thread]
        for event in sorted(on_thread, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 200, "spans of one thread nest, within JAX's clock"
            open_until.append(end)


def test_timeline_has_each_span_once_within_its_test(suite):
    run = suite(SOURCE, *OUTPUTS)
    events = json.loads((suite.folder / "timeline.json").read_text())["traceEvents"]
    compiles = [e for e in events if e.get("cat") == "compile"]
    assert len(compiles) == run.json["totals"]["compiles"]
    traces = [e for e in events if e.get("cat") == "trace" and "signature" in e["args"]]
    assert len(traces) >= run.json["totals"]["traces"]
    call = next(e for e in events if e["name"] == "test_it.py::test_first (call)")
    inside = [e for e in compiles if e["name"] == "compile <lambda>" and e["args"]["test"] == "test_it.py::test_first"]
    assert len(inside) == 3
    assert all(call["ts"] <= e["ts"] and e["ts"] + e["dur"] <= call["ts"] + call["dur"] for e in inside)


def test_threads_have_tracks_of_their_own(suite):
    suite(
        """
        import threading
        def test_it():
            thread = threading.Thread(target=reverse, args=(jnp.arange(8),), name="loader"); thread.start(); thread.join()
        """,
        *OUTPUTS,
    )
    events = json.loads((suite.folder / "timeline.json").read_text())["traceEvents"]
    track = next(e["tid"] for e in events if e["ph"] == "M" and e["args"]["name"] == "loader")
    assert {e["cat"] for e in events if e["tid"] == track and e["ph"] == "X"} >= {"trace", "compile"}


def test_threads_of_one_name_are_told_apart(suite):
    """Both tracks and the compiles: each thread traces for a while before the other one compiles."""
    run = suite(
        """
        import threading
        together = threading.Barrier(2)
        def step(x, n): together.wait(); return x * n
        def work(n): jax.jit(step, static_argnums=1)(jnp.ones(n), n)
        def test_it():
            threads = [threading.Thread(target=work, args=(n,), name="worker") for n in (2, 3)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """,
        *OUTPUTS,
    )
    events = json.loads((suite.folder / "timeline.json").read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"].count("worker") == 2
    assert [record["compiles"] for record in run.json["tests"][-1]["records"]] == [1, 1]


# --- xdist, reruns, early ends


def test_workers_agree_with_one_process(suite):
    pytest.importorskip("xdist")
    inner = announces_bodies()  # JAX before 0.9 does not tell of bodies that are traced inside a trace
    alone = counts(suite(SOURCE, *OUTPUTS, "-n", "0", "--jitcache-summary"))
    together = suite(None, *OUTPUTS, "-n", "2", "--jitcache-summary")
    workers = {test["worker"] for test in together.json["tests"]}
    assert alone == {
        "reverse.<locals>.<lambda>": (3, 1, 3, {"test_it.py::test_first": 3}),
        "test_second.<locals>.<lambda>": (2, 2, 2, {"test_it.py::test_second": 2}),
        **(
            {"test_second.<locals>.<lambda>.<locals>.<lambda>": (2, 1, 0, {"test_it.py::test_second": 2})}
            if inner
            else {}
        ),
    }
    assert counts(together) == alone
    assert workers >= {"gw0", "gw1"}
    assert " in 2 workers: " in together.output


def test_strict_and_baseline_under_xdist(suite):
    pytest.importorskip("xdist")
    run = suite(SOURCE, "-n", "2", "--jitcache-baseline=b.json", "--jitcache-update-baseline")
    assert run.status == 0
    assert suite(None, "-n", "2", "--jitcache-strict").status == 1
    assert suite(None, "-n", "2", "--jitcache-baseline=b.json").status == 0


def test_crashed_worker_loses_its_unfinished_test_only(suite):
    pytest.importorskip("xdist")
    run = suite(
        SOURCE
        + """
import os
def test_crash():
    reverse(jnp.arange(9))
    os._exit(1)
""",
        *OUTPUTS,
        "-n",
        "1",
    )
    assert run.status == 1
    assert run.function("reverse.<lambda>")["tests"] == {"test_it.py::test_first": 3}
    assert run.function("test_second.<lambda>")["traces"] == 2


def test_attempts_of_a_rerun_are_all_there(suite):
    pytest.importorskip("pytest_rerunfailures")
    run = suite(
        """
        attempts = []
        def test_it():
            attempts.append(1)
            reverse(jnp.arange(8))
            assert len(attempts) == 3
        """,
        *OUTPUTS,
        "--reruns=3",
        "--jitcache-strict",
    )
    assert run.status == 0
    tests = [test for test in run.json["tests"] if test["test"]]
    assert [(test["attempt"], test["outcome"]) for test in tests] == [(1, "failed"), (2, "failed"), (3, "passed")]
    assert run.function("reverse.<lambda>")["traces"] == 3


def test_first_failure_ends_the_run_with_outputs(suite):
    run = suite(SOURCE, *OUTPUTS, "--jitcache-strict", "-x")
    assert run.status == 1
    assert run.function("reverse.<lambda>")["traces"] == 3
    assert [test["test"] for test in run.json["tests"] if test["test"]] == ["test_it.py::test_first"]


def interrupted(suite, *args: str) -> tuple[dict, str]:
    """The JSON document and the output of a run that Ctrl-C ends in its second test."""
    suite.write(
        "test_it.py",
        """
import pathlib, time, jax, jax.numpy as jnp
def test_first(): jax.jit(lambda x: x + 1)(1.0)
def test_stuck():
    jax.jit(lambda x: x + 2)(1.0)
    pathlib.Path("stuck").touch()
    time.sleep(200)
""",
    )
    # which a job in the background would ignore
    suite.write("conftest.py", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)")
    process = subprocess.Popen(
        suite.command(*OUTPUTS, "--jitcache-summary", *args),
        cwd=suite.folder,
        env=suite.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(1200):
        if (suite.folder / "stuck").exists():
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    return json.loads((suite.folder / "run.json").read_text()), output


def test_interrupted_run_writes_what_was_seen(suite):
    document, output = interrupted(suite)
    assert [f["qualname"] for f in sorted(document["functions"], key=lambda f: f["line"])] == [
        "test_first.<locals>.<lambda>",
        "test_stuck.<locals>.<lambda>",
    ]
    assert [(t["test"], t["outcome"]) for t in document["tests"] if t["test"]] == [
        ("test_it.py::test_first", "passed"),
        ("test_it.py::test_stuck", None),
    ]
    assert "jitcache: tracing and compiling" in output


def test_interrupted_controller_counts_the_workers_that_run(suite):
    pytest.importorskip("xdist")
    totals = interrupted(suite, "-n", "1")[0]["totals"]
    assert totals["workers"] == 1
    assert totals["wall_seconds"] > 0


def test_interrupt_in_a_worker_is_counted_once(suite):
    """xdist tells of the end of such a worker twice."""
    pytest.importorskip("xdist")
    run = suite(SOURCE + "def test_interrupt(): reverse(jnp.arange(9)); raise KeyboardInterrupt", *OUTPUTS, "-n", "1")
    tests = [test["test"] for test in run.json["tests"]]
    assert tests.count("test_it.py::test_interrupt") == 1
    assert run.function("reverse.<lambda>")["tests"]["test_it.py::test_interrupt"] == 1


# --- baseline

BASELINE = ("--jitcache-baseline=b.json",)


def test_baseline_accepts_the_known_and_fails_the_new(suite):
    written = suite(SOURCE, *BASELINE, "--jitcache-update-baseline")
    assert written.status == 0
    assert "jitcache: baseline written to " in written.output
    assert json.loads((suite.folder / "b.json").read_text()) == {
        "schema": "jitcache-baseline",
        "version": 1,
        "retraces": {"test_it.py::test_first": ["test_it.py::reverse.<lambda>"]},
    }
    new = "\ndef test_new():\n    for _ in range(2): reverse(jnp.arange(8))\n"
    run = suite("# moved down\n\n" + SOURCE + new, *BASELINE, "-rf")
    assert run.failed == ["test_new"]


def write_baseline(suite, *tests: str) -> None:
    entries = {test: ["test_it.py::old"] for test in tests}
    suite.write("b.json", json.dumps({"schema": "jitcache-baseline", "version": 1, "retraces": entries}))


def test_stale_entries_are_named_and_dropped(suite):
    entries = {
        "test_it.py::test_first": ["test_it.py::reverse.<lambda>", "test_it.py::gone"],
        "test_it.py::test_third": ["test_it.py::old"],
    }
    suite.write("b.json", json.dumps({"schema": "jitcache-baseline", "version": 1, "retraces": entries}))
    run = suite(SOURCE, *BASELINE)
    assert run.status == 0
    assert "jitcache: 2 stale entries in b.json (--jitcache-update-baseline drops them):" in run.output
    assert "  test_it.py::test_first: test_it.py::gone" in run.output
    assert "  test_it.py::test_third: test_it.py::old" in run.output
    suite(None, *BASELINE, "--jitcache-update-baseline", "--deselect=test_it.py::test_third")
    assert json.loads((suite.folder / "b.json").read_text())["retraces"] == {
        "test_it.py::test_first": ["test_it.py::reverse.<lambda>"],
        "test_it.py::test_third": ["test_it.py::old"],
    }


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_entries_of_tests_that_are_gone_are_stale(suite, workers):
    if workers:
        pytest.importorskip("xdist")
    suite.write("test_elsewhere.py", "def test_it(): pass")
    kept = ["test_elsewhere.py::test_gone", "test_it.py::test_third"]
    write_baseline(suite, "test_it.py::test_gone", "test_no_more.py::test_it", *kept)
    run = suite(SOURCE, *BASELINE, *workers, "test_it.py", "-k", "not third and not first")
    stale = run.output.partition("2 stale entries in b.json")[2]
    assert "  test_it.py::test_gone: test_it.py::old" in stale
    assert "  test_no_more.py::test_it: test_it.py::old" in stale
    again = (*BASELINE, *workers, "test_it.py", "-k", "not third and not first")
    suite(None, *again, "--jitcache-update-baseline")
    assert list(json.loads((suite.folder / "b.json").read_text())["retraces"]) == kept


@pytest.mark.parametrize("args", [["test_it.py::test_second"], ["--lf", "-p", "cacheprovider"]], ids=["id", "lf"])
def test_narrowed_run_says_of_no_test_that_it_is_gone(suite, args):
    write_baseline(suite, "test_it.py::test_gone")
    run = suite(SOURCE, *BASELINE, *args)
    assert "stale" not in run.output
