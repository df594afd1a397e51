"""What a jit that is made anew costs, against a warm call of one that is kept: `python tests/benchmarks/bench_retrace.py`.

Prints medians of calls of the same sum of squares, and the ratio of the two, measured in turn in one run.
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

ROUNDS = 15


@jax.jit
def kept(x: jax.Array) -> jax.Array:
    return jnp.sum(x**2)


def fresh(x: jax.Array) -> jax.Array:
    return jax.jit(lambda v: jnp.sum(v**2))(x)  # noqa: JIT101


def seconds(function: Callable[[jax.Array], jax.Array], x: jax.Array, calls: int) -> float:
    """Seconds a call, over `calls` calls."""
    start = time.perf_counter()
    for _ in range(calls):
        function(x).block_until_ready()
    return (time.perf_counter() - start) / calls


def main() -> None:
    x = jnp.arange(4.0)
    kept(x).block_until_ready()
    pairs = [(seconds(fresh, x, 1), seconds(kept, x, 200)) for _ in range(ROUNDS)]
    made, warm = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"JAX {jax.__version__}, {jax.default_backend()}, f32[4]; median of {ROUNDS} rounds")
    print(f"made anew on each call: {made * 1e3:8.1f} ms a call")
    print(f"made once, warm:        {warm * 1e6:8.1f} us a call")
    print(f"ratio:                  {ratio:8.0f}")


if __name__ == "__main__":
    main()
