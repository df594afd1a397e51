"""What a guard costs, as ratios against the same thing without it, measured in turns in one run.

    JAX_PLATFORMS=cpu python tests/benchmarks/bench_fixture.py

Each line: what, the ratio (best of several turns for both sides), and the limit that the project sets itself.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from pytest_jitcache import traced_once

X = jnp.ones(8)


PARAMS = {f"layer{n}": {"kernel": jnp.ones((8, 8)), "bias": jnp.ones(8)} for n in range(3)}


@jax.jit
def step(x: jax.Array) -> jax.Array:
    """As cheap to call as a jitted function can be, so that what a guard adds shows most."""
    return x * 2


@jax.jit
def update(params: dict[str, dict[str, jax.Array]], x: jax.Array) -> dict[str, dict[str, jax.Array]]:
    """A step of training, as to its arguments."""
    return jax.tree.map(lambda leaf: leaf - 0.1 * x[0], params)


def seconds(run: Callable[[], object], times: int) -> float:
    """Of this thread's own work, so that what else the machine does counts as little as possible."""
    gc.disable()
    began = time.thread_time()
    for _ in range(times):
        run()
    ended = time.thread_time()
    gc.enable()
    return ended - began


def warm_call_in_block() -> float:
    def call() -> object:
        return step(X)

    best = [float("inf"), float("inf")]
    for _ in range(30):
        with traced_once(step):
            call()
            best[0] = min(best[0], *(seconds(call, 300) for _ in range(20)))
        best[1] = min(best[1], *(seconds(call, 300) for _ in range(20)))
    return best[0] / best[1]


def in_a_closure(function: Callable[..., object]) -> Callable[..., object]:
    def closure(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return closure


def warm_calls() -> dict[str, float]:
    """Ratios of a warm call in other forms to the bare one, of two functions, all in turn in one run."""

    def plain(x: jax.Array) -> jax.Array:
        return step(x)

    wrapped, wrapped_update, wrapped_plain = traced_once(step), traced_once(update), traced_once(plain)
    closure, closure_update, closure_plain = in_a_closure(step), in_a_closure(update), in_a_closure(plain)
    sides: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "wrap form": (lambda: wrapped(X), lambda: step(X)),
        "a bare closure": (lambda: closure(X), lambda: step(X)),
        "wrap form, training step": (lambda: wrapped_update(PARAMS, X), lambda: update(PARAMS, X)),
        "a bare closure, training step": (lambda: closure_update(PARAMS, X), lambda: update(PARAMS, X)),
        "wrap form, plain function": (lambda: wrapped_plain(X), lambda: plain(X)),
        "a bare closure, plain function": (lambda: closure_plain(X), lambda: plain(X)),
    }
    best = {name: [float("inf"), float("inf")] for name in sides}
    for pair in sides.values():
        for run in pair:
            run()
    for _ in range(300):
        for name, pair in sides.items():
            for side, run in enumerate(pair):
                best[name][side] = min(best[name][side], seconds(run, 200))
    return {name: with_guard / without for name, (with_guard, without) in best.items()}


def trace_of_200_operations() -> float:
    def body(x: jax.Array) -> jax.Array:
        for n in range(100):
            x = jnp.sin(x) * float(n)
        return x

    f = jax.jit(body)

    def bare() -> None:
        f.clear_cache()
        f.trace(X)

    bare()
    best = [float("inf"), float("inf")]
    for _ in range(40):
        with traced_once(f, max_traces=10**9):
            best[0] = min(best[0], *(seconds(bare, 1) for _ in range(3)))
        best[1] = min(best[1], *(seconds(bare, 1) for _ in range(3)))
    return best[0] / best[1]


def traces_of_a_lambda() -> Callable[[], object]:
    return lambda: jax.jit(lambda x: x).trace(X)


def traces_of_many_shapes() -> Callable[[], object]:
    f = jax.jit(lambda x: x)
    length = iter(range(1, 10**9))
    return lambda: f.trace(jax.ShapeDtypeStruct((next(length),), jnp.float32))


def traces_of_kept_functions() -> Callable[[], object]:
    kept: list[object] = []

    def made() -> None:
        f = jax.jit(lambda x: x)
        kept.append(f)
        f.trace(X)

    return made


def time_per_trace(make: Callable[[], Callable[[], object]]) -> list[float]:
    """Milliseconds a trace under a guard: of the first 1000, of the next 2000, and of the last 7000 of 10000."""
    run = make()
    with traced_once(max_traces=10**9):
        run()
        return [min(seconds(run, 500) for _ in range(n // 500)) * 2 for n in (1000, 2000, 7000)]


def plugin_import() -> float:
    """Milliseconds that loading the plugin adds to a Python that has pytest loaded already."""
    code = "import time, pytest; t = time.perf_counter(); import pytest_jitcache.plugin; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [float(subprocess.check_output([sys.executable, "-c", code], env=environment)) for _ in range(30)]
    return min(runs[1:]) * 1e3


def main() -> None:
    print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
    print(f"{'warm call, block form':42} {warm_call_in_block():.3f}   limit 1.00 (noise)")
    for name, ratio in warm_calls().items():
        print(
            f"warm call, {name:31} {ratio:.3f}   {'(for comparison)' if 'closure' in name or 'plain' in name else 'limit 1.08'}"
        )
    print(f"{'trace of 200 operations':42} {trace_of_200_operations():.3f}   limit 1.03")
    for words, make in (
        ("a lambda made anew", traces_of_a_lambda),
        ("one function, many shapes", traces_of_many_shapes),
        ("functions that are kept", traces_of_kept_functions),
    ):
        times = time_per_trace(make)
        shown = " ".join(f"{time:.2f}" for time in times)
        print(f"{'10000 traces, ' + words:42} {times[2] / times[0]:.3f}   limit 1.2 (linear); {shown} ms a trace")
    print(f"{'loading the plugin':42} {plugin_import():.2f} ms   limit 2 ms")


if __name__ == "__main__":
    main()
