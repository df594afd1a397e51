"""The record that a guard keeps, the verdicts about nothing, and wrong arguments."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref

import jax
import jax.monitoring
import jax.numpy as jnp
import pytest

import pytest_jitcache
from pytest_jitcache import JitcacheWarning, RetraceError, traced_once

X = jnp.ones(3)
OLD = jax.__version_info__ < (0, 5)


@jax.jit
def step(w, rate=0.1):
    return w - rate * w


def plain(x):
    return float(x[0]) + 1


def test_a_trace_says_where_and_what():
    with traced_once(step) as traces:
        step(X, 0.5)  # here
    (trace,) = traces
    assert (trace.name, trace.qualname, trace.line) == ("step", "step", step.__wrapped__.__code__.co_firstlineno)
    assert str(trace.signature) == "w: f32[3], rate: ~f32[]"
    with open(__file__) as source:
        assert source.read().splitlines()[trace.call_site.line - 1].endswith("# here")
    assert trace.thread == threading.current_thread().name
    assert trace.seconds["trace"] > 0
    assert trace.seconds["compile"] > 0
    assert trace.compiles == 1
    assert trace.inside is None


def test_a_trace_says_in_which_other_one_it_was_inlined():
    @jax.jit
    def outer(x):
        return step(x)

    with traced_once(step) as traces:
        outer(X)
    assert traces[0].inside.name == "outer"


def test_the_record_keeps_neither_arguments_nor_functions_alive():
    with traced_once() as traces:
        array = jnp.full(3, 2.0)

        def made(v):
            return v * 3

        jitted = jax.jit(made)
        jitted(array)
        refs = [weakref.ref(array), weakref.ref(made)]
        del array, made, jitted
        gc.collect()
        assert [ref() for ref in refs] == [None, None]
    assert len(traces) == 1


def test_the_record_keeps_neither_tracers_nor_frames_alive():
    refs = []

    class Local:
        pass

    @jax.jit
    def body(x):
        in_the_frame = Local()
        refs.append(weakref.ref(in_the_frame))
        refs.append(weakref.ref(x))
        return x * 2

    with traced_once(body) as traces:
        body(X)
        gc.collect()
        assert [ref() for ref in refs] == [None, None]
    assert len(traces) == 1


def test_the_record_is_a_sequence():
    with traced_once(step, max_traces=2) as traces:
        step(X, 0.1)
        step(X, jnp.float32(0.1))
    assert len(traces) == len(traces[:]) == len(list(traces)) == 2
    assert "2 traces" in repr(traces)
    assert "step(w: f32[3], rate: ~f32[])" in str(traces)


def test_the_error_carries_the_record():
    with pytest.raises(RetraceError) as caught, traced_once(step) as traces:
        step(X, 0.1)
        step(X, jnp.float32(0.1))
    assert caught.value.traces is traces
    assert traces[1].cause == "weak type (rate)"


def test_the_error_is_named_by_where_it_is_imported_from():
    for public in (RetraceError, JitcacheWarning, traced_once):
        assert public.__module__ == "pytest_jitcache"
        assert getattr(pytest_jitcache, public.__name__) is public


def test_the_error_crosses_processes_with_its_texts():
    with pytest.raises(RetraceError) as caught, traced_once(step):
        step(X, 0.1)
        step(X, jnp.float32(0.1))
    caught.value.verbosity = 2
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is RetraceError
    assert str(copy) == str(caught.value)
    assert copy.traces is None


def test_a_wrap_of_a_plain_function_that_is_dropped_leaves_nothing_behind(monkeypatch):
    # as outside pytest, which keeps it to the end of the test
    monkeypatch.setattr("pytest_jitcache.guard.forms.holders", [])

    def epoch():
        return step(X)

    for _ in range(2):
        wrapped = traced_once(epoch)
        wrapped()
        jax.jit(lambda x: x - 1)(X)  # from now on, it looks whether the function is inlined
        guard = weakref.ref(wrapped._guard)
        del wrapped
        gc.collect()
        assert guard() is None
        assert sys.getprofile() is None


def test_info_is_shown():
    with pytest.raises(RetraceError, match="the rate is a schedule"), traced_once(step, info="the rate is a schedule"):
        step(X, 0.1)
        step(X, jnp.float32(0.1))


@pytest.mark.xfail(OLD, reason="JAX 0.4 does not tell of functions inlined in a trace: a warning instead", strict=True)
def test_a_plain_function_without_a_jit():
    with pytest.raises(RetraceError, match="plain was never traced"), traced_once(plain):
        plain([1.0])


def test_a_plain_function_whose_jit_may_be_warm():
    def uses_step(x):
        return step(x)

    step(X)
    with pytest.warns(JitcacheWarning, match="uses_step was called and nothing was traced"), traced_once(uses_step):
        uses_step(X)


def test_a_function_that_is_never_called():
    with pytest.warns(JitcacheWarning, match="step was never called"), traced_once(step):
        pass


def test_an_empty_block():
    with pytest.warns(JitcacheWarning, match="nothing was traced"), traced_once():
        pass


def test_removed_listeners_are_noticed_and_repaired():
    with pytest.raises(RetraceError, match="listeners were removed"), traced_once(step):
        step(X)
        jax.monitoring.clear_event_listeners()
    with traced_once(step) as traces:
        step(X)
    assert traces[0].compiles == 1


def test_an_exception_in_the_block_wins():
    with pytest.raises(LookupError), traced_once(step):
        step(X, 0.1)
        step(X, jnp.float32(0.1))
        raise LookupError


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_traces": -3}, ValueError, "max_traces must be at least 0, got -3"),
        ({"max_traces": -1}, ValueError, "max_traces must be at least 0, got -1"),
        ({"max_traces": 1.5}, TypeError, "max_traces must be an int, got float"),
        ({"max_traces": True}, TypeError, "max_traces must be an int, got bool"),
        ({"max_compiles": "2"}, TypeError, "max_compiles must be an int, got str"),
        ({"max_compiles": -1}, ValueError, "max_compiles must be at least 0, got -1"),
        ({"per": "call"}, ValueError, "per must be 'signature', 'total' or 'definition', got 'call'"),
        ({"info": 3}, TypeError, "info must be a string, got int"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        traced_once(step, **options)


def test_the_result_of_a_call_is_no_function():
    with pytest.raises(TypeError, match="takes functions, got ArrayImpl"):
        traced_once(step(X))


@pytest.mark.parametrize("functions", [(), (step, plain)], ids=["none", "two"])
def test_the_wrap_form_takes_one_function(functions):
    with pytest.raises(TypeError, match="takes one function, got"):
        traced_once(*functions)(X)
