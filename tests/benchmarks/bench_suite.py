"""What the suite options cost: one suite of small JAX tests, with and without them, in turns.

    python tests/benchmarks/bench_suite.py [tests] [rounds]

Prints the ratio (options on / options off) of the least CPU time of a round, which other work on the machine disturbs
less than the time on the clock. Ratios only mean something within one run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TEST = """
def test_{n}():
    @jax.jit
    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: jnp.sum((w @ x - {n}) ** 2))(w)
    w = jnp.ones({size})
    for _ in range(20):
        w = step(w, jnp.ones(({size}, 4)))
    assert jnp.isfinite(w).all()
"""

VARIANTS = {
    "off": [],
    "summary": ["--jitcache-summary"],
    "strict, summary, JSON, timeline": [
        "--jitcache-strict",
        "--jitcache-summary",
        "--jitcache-json=run.json",
        "--jitcache-timeline=timeline.json",
    ],
}


def seconds(folder: Path, options: list[str]) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *options]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    number, rounds = (int(argument) for argument in (sys.argv[1:] + ["200", "3"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        tests = "".join(TEST.format(n=n, size=4 + n % 5) for n in range(number))
        (folder / "test_small.py").write_text("import jax\nimport jax.numpy as jnp\n" + tests)
        best = dict.fromkeys(VARIANTS, float("inf"))
        for turn in range(rounds):
            for variant, options in VARIANTS.items():
                best[variant] = min(best[variant], seconds(folder, options))
                print(f"round {turn + 1}, {variant}: best {best[variant]:.2f} s", flush=True)
    for variant, spent in best.items():
        print(f"{variant}: {spent / best['off']:.3f}")


if __name__ == "__main__":
    main()
