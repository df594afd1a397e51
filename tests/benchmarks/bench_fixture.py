"""What a guard costs, as ratios against the same thing without it, measured in turns in one run.

    JAX_PLATFORMS=cpu python tests/benchmarks/bench_fixture.py

Each line: what, the ratio (best of several turns for both sides), and the limit that the project sets itself.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from pytest_jitcache import traced_once

X = jnp.ones(8)


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return x * 2


def seconds(run: Callable[[], object], times: int) -> float:
    gc.disable()
    began = time.perf_counter()
    for _ in range(times):
        run()
    ended = time.perf_counter()
    gc.enable()
    return ended - began


def ratio(with_guard: Callable[[], object], without: Callable[[], object], times: int = 300, turns: int = 600) -> float:
    """The ratio of the best of many short turns, taken alternately, so that other work on the machine does not count."""
    best = [float("inf"), float("inf")]
    for _ in range(turns):
        for side, run in enumerate((with_guard, without)):
            best[side] = min(best[side], seconds(run, times))
    return best[0] / best[1]


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


def warm_call_wrapped() -> float:
    wrapped = traced_once(step)
    wrapped(X)
    return ratio(lambda: wrapped(X), lambda: step(X))


def bare_closure() -> float:
    def closure(*args: object, **kwargs: object) -> object:
        return step(*args, **kwargs)

    return ratio(lambda: closure(X), lambda: step(X))


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


def ten_thousand_traces() -> tuple[float, float]:
    """The time per trace of the last thousand of 10000 against the first, and what the guard adds a trace (ms)."""

    def fresh() -> None:
        jax.jit(lambda x: x).trace(X)

    with traced_once(max_traces=10**9):
        fresh()
        parts = [seconds(fresh, 1000) for _ in range(10)]
    without = [seconds(fresh, 1000) for _ in range(3)]
    return statistics.median(parts[-3:]) / statistics.median(parts[:3]), (min(parts) - min(without))


def plugin_import() -> float:
    """Milliseconds that loading the plugin adds to a Python that has pytest loaded already."""
    code = "import time, pytest; t = time.perf_counter(); import pytest_jitcache.plugin; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [float(subprocess.check_output([sys.executable, "-c", code], env=environment)) for _ in range(6)]
    return min(runs[1:]) * 1e3


def main() -> None:
    print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
    print(f"warm call, block form          {warm_call_in_block():.3f}   limit 1.00 (noise)")
    print(f"warm call, wrap form           {warm_call_wrapped():.3f}   limit 1.08")
    print(f"warm call, a bare closure      {bare_closure():.3f}   (for comparison)")
    print(f"trace of 200 operations        {trace_of_200_operations():.3f}   limit 1.03")
    growth, added = ten_thousand_traces()
    print(f"10000 traces, last : first     {growth:.3f}   limit 1.2 (linear); {added:.3f} ms a trace added")
    print(f"loading the plugin             {plugin_import():.2f} ms   limit 2 ms")


if __name__ == "__main__":
    main()
