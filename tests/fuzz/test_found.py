"""What random programs have found, made small."""

import threading

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from pytest_jitcache import RetraceError, traced_once

X, Y, N = jnp.ones(3), jnp.ones(4), jnp.arange(3)
since_0_9 = pytest.mark.skipif(jax.__version_info__ < (0, 9), reason="JAX 0.9 or later")


def on_a_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def first_line(run, *functions, **options):
    with pytest.raises(RetraceError) as caught, traced_once(*functions, **options):
        run()
    return str(caught.value).splitlines()[0]


@since_0_9
def test_local_body_of_a_function_that_is_traced_on_two_threads():
    @jax.jit
    def total(x):
        return lax.scan(lambda c, v: (c + v, None), jnp.float32(0), X)[0] + x

    with traced_once():
        total(N)
        on_a_thread(lambda: total(X))


def test_plain_function_that_gives_work_to_a_thread():
    step = jax.jit(lambda x: x * 2)

    def work():
        on_a_thread(lambda: step(X))
        with jax.default_matmul_precision("highest"):
            step(X)

    assert "traced 2x, allowed 1: JAX config" in first_line(work, work)


def test_earlier_trace_under_the_same_settings_is_the_one_to_compare_with():
    def double(x):
        return x * 2

    def run():
        for precision in ("highest", None, "highest"):
            with jax.default_matmul_precision(precision):
                lax.map(double, X)

    assert first_line(run, max_traces=2) == "double traced 3x, allowed 2: new function object"


def test_plain_function_that_is_called_once_without_jit():
    step = jax.jit(lambda x: x * 2)

    def work():
        step(X)

    def run():
        work()
        with jax.disable_jit():
            work()

    assert "jit disabled" in first_line(run, work)


@since_0_9
def test_kept_local_function_is_one_function_inside_a_trace_and_outside():
    @jax.jit
    def step(x):
        return x * 2

    def run():
        with jax.default_matmul_precision("highest"):
            step(X)
        jax.jit(lambda x: step(x))(X)

    assert first_line(run) == "step traced 2x, allowed 1: JAX config (default_matmul_precision)"


@since_0_9
def test_jit_of_jit_made_anew_is_traced_again_for_cleared_caches_alone():
    def double(x):
        return x * 2

    def run():
        jax.jit(jax.jit(double))(X)
        jax.clear_caches()
        jax.jit(jax.jit(double))(X)

    assert first_line(run) == "double traced 2x, allowed 1: caches cleared"


def test_static_object_made_anew_after_several_of_its_type_have_died():
    class Options:
        pass

    step = jax.jit(lambda x, options: x * 2, static_argnums=1)
    several = [Options() for _ in range(3)]
    for options in several:
        step(X, options)
    several.clear()
    del options
    jax.clear_caches()

    def run():
        for _ in range(3):
            step(Y, Options())

    assert first_line(run, step) == "<lambda> traced 3x, allowed 1: static argument made anew (options)"
