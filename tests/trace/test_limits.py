"""What a guard allows: nothing at all, one function of each place; and what it doesn't charge, or does not pass."""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import pytest

from pytest_jitcache import JitcacheWarning, RetraceError, traced_once

X = jnp.ones(3)


def first_line(error: pytest.ExceptionInfo[RetraceError]) -> str:
    return str(error.value).partition("\n")[0]


# -- nothing may be traced or compiled


@pytest.fixture
def step():
    """A jitted function that is warm for f32[3]."""
    made = jax.jit(lambda x: x + 1)
    made(X)
    return made


@pytest.mark.parametrize("limits", [{"max_traces": 0}, {"max_compiles": 0}, {"max_traces": 0, "max_compiles": 0}])
@pytest.mark.parametrize("named", [True, False])
def test_what_is_warm_passes(step, limits, named):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with traced_once(*[step] * named, **limits) as traces:
            step(X)
            step(X * 2)
    assert len(traces) == 0


@pytest.mark.parametrize("named", [True, False])
def test_new_shape_after_the_warm_up_fails(step, named):
    with pytest.raises(RetraceError) as error, traced_once(*[step] * named, max_traces=0):
        step(X)
        step(X[:2])
    assert first_line(error) == "<lambda> traced 1x, allowed 0: not warm for this call"


def test_second_shape_after_the_warm_up_names_what_differs(step):
    with pytest.raises(RetraceError) as error, traced_once(step, max_traces=0, per="total"):
        step(X[:2])
        step(X[:1])
    assert first_line(error) == "<lambda> traced 2x, allowed 0: shape (x)"


def test_compile_after_the_warm_up_fails(step):
    with pytest.raises(RetraceError) as error, traced_once(step, max_compiles=0):
        step(jax.device_put(X, jax.devices()[0]))  # committed: compiled again, not traced again
    assert first_line(error) == "<lambda> compiled 1x, allowed 0: not warm for this call"


def test_wrap_stays_warm(step):
    guarded = traced_once(step, max_traces=0)
    guarded(X)
    with pytest.raises(RetraceError, match="not warm for this call"):
        guarded(X[:1])


def test_driver_in_which_nothing_is_to_be_traced_passes(step):
    def drive(batches):
        for batch in batches:
            step(batch)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with traced_once(drive, max_traces=0):
            drive([X, X])


def test_driver_that_is_never_called_says_so(step):
    def drive():
        step(X)

    with pytest.warns(JitcacheWarning, match="drive was never called"), traced_once(drive, max_traces=0):
        pass


# -- a driver whose jits are out of sight of its globals


class Agent:
    def __init__(self, act):
        self.act = act
        self.table = {"act": act}

    def run(self, x):
        return self.table["act"](x)

    @functools.partial(jax.jit, static_argnums=0)
    def method(self, x):
        return x


def by_argument(fn, x):
    return fn(x)


def by_attribute(agent, x):
    return agent.act(x)


def by_item(agents, x):
    return agents["a"].act(x)


def by_method(agent, x):
    return agent.run(x)


def by_jitted_method(agent, x):
    return agent.method(x)


def by_empty_list(fns, x):
    return [fn(x) for fn in fns]


@pytest.mark.parametrize(
    ("drive", "wrap"),
    [
        (by_argument, lambda agent: agent.act),
        (by_attribute, lambda agent: agent),
        (by_item, lambda agent: {"a": agent}),
        (by_method, lambda agent: agent),
        (by_jitted_method, lambda agent: agent),
    ],
)
def test_driver_of_a_warm_function_that_it_is_given_warns(step, drive, wrap):
    agent = Agent(step)
    drive(wrap(agent), X)
    with pytest.warns(JitcacheWarning, match="warm from before"), traced_once(drive):
        drive(wrap(agent), X)


def test_driver_without_a_jit_fails():
    with pytest.raises(RetraceError, match="by_empty_list was never traced"), traced_once(by_empty_list):
        by_empty_list([abs], 1.0)


# -- made anew and kept

KEPT: list[object] = []


def make_and_keep(k):
    KEPT.append(jax.jit(lambda x: x + k))
    return KEPT[-1]


@functools.lru_cache
def make_for(key):
    return jax.jit(lambda x: x + 1)


def test_kept_functions_of_one_place_count_together_by_definition():
    with pytest.raises(RetraceError) as error, traced_once(per="definition"):
        for _ in range(3):
            make_and_keep(1)(X)
    assert first_line(error) == "<lambda> traced 3x, allowed 1: made anew and kept"
    assert "a cache whose key is a new object each time" in str(error.value)


def test_cache_with_a_fresh_key_is_found_by_definition():
    with pytest.raises(RetraceError, match="made anew and kept"), traced_once(per="definition"):
        for _ in range(2):
            make_for(object())(X)


def test_kept_functions_count_apart_by_signature():
    with traced_once():
        for k in range(3):
            make_and_keep(k)(X)


def test_by_definition_each_signature_counts_apart():
    with traced_once(per="definition"):
        make_and_keep(1)(X)
        make_and_keep(1)(X[:1])


def test_by_definition_a_number_may_be_allowed():
    with traced_once(per="definition", max_traces=3):
        for k in range(3):
            make_and_keep(k)(X)


def test_two_places_count_apart_by_definition():
    with traced_once(per="definition"):
        jax.jit(lambda x: x + 1)(X)
        jax.jit(lambda x: x + 2)(X)


# -- a guard inside a guard


def guarded_once(function):
    with traced_once(function):
        function(X)


def test_outer_guard_sees_what_is_made_anew_under_inner_guards():
    with pytest.raises(RetraceError, match="traced 2x, allowed 1: new function object"), traced_once():
        for _ in range(2):
            guarded_once(jax.jit(lambda x: x + 1))


@pytest.mark.parametrize("named", [True, False])
def test_inner_guards_clearing_is_not_charged_to_the_outer(step, named):
    with traced_once(*[step] * named):
        step(X)
        guarded_once(step)
        guarded_once(step)
        step(X)


@pytest.mark.parametrize("named", [True, False])
def test_inner_guards_clearing_is_not_charged_where_nothing_may_be_traced(step, named):
    with traced_once(*[step] * named, max_traces=0):
        step(X)
        guarded_once(step)
        step(X)


def test_outer_guard_sees_a_retrace_that_the_inner_allows(step):
    seen = pytest.raises(RetraceError, match="traced 2x, allowed 1: weak type")
    with seen, traced_once(step), traced_once(step, max_traces=2):
        step(jnp.float32(1))
        step(1.0)


# -- jit switched off in a part of the block


def with_part_off(x):
    first = jax.jit(lambda v: v + 1)(x)
    with jax.disable_jit():
        return jax.jit(lambda v: v + 2)(first)


def test_part_without_jit_spoils_a_block_without_a_function(step):
    with pytest.raises(RetraceError, match="the block was not judged: jit disabled"), traced_once():
        step(X[:2])
        with jax.disable_jit():
            step(X)


def test_part_without_jit_spoils_a_named_function(step):
    with pytest.raises(RetraceError, match="<lambda> was not judged: jit disabled"), traced_once(step):
        step(X)
        with jax.disable_jit():
            step(X)


def test_part_without_jit_spoils_a_plain_function():
    with pytest.raises(RetraceError, match="with_part_off was not judged: jit disabled"), traced_once(with_part_off):
        with_part_off(X)


def test_part_without_jit_in_which_the_named_function_does_not_run_spoils_nothing(step):
    other = jax.jit(lambda x: x)
    with traced_once(step):
        step(X)
        with jax.disable_jit():
            other(X)


# -- where a warning points


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(text))


def test_warning_of_a_block_points_at_its_line(step):
    with pytest.warns(JitcacheWarning) as caught, traced_once(step):  # the block
        pass
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line_of("# the block"))]


def test_warning_of_a_block_that_was_made_before_points_at_where_it_was_made(step):
    guard = traced_once(step)  # made here
    with pytest.warns(JitcacheWarning) as caught, guard:
        pass
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line_of("# made here"))]
