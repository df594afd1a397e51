"""What the plugin costs flake8: ratios measured in one run.

usage: python tests/benchmarks/bench_linter.py [--rounds N] [--quick] [PACKAGE ...]

1. `flake8` with the plugin against `flake8` without, on installed packages (default: jax and flax), as whole processes
   in turn. The wall time is the least of the rounds, the processor time too.
2. A file without a jit: milliseconds per thousand lines, against parsing it.
3. Linearity: the time per line as a file grows to 200,000 lines, in shapes that tempt an analysis to be quadratic. In
   processor time with Python's garbage collector off: its own cost grows with everything that the process holds.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.util
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from flake8_jitcache.analysis import findings
from flake8_jitcache.options import Options
from flake8_jitcache.plugin import Plugin

# flake8 has no switch that unloads a plugin, so both sides run flake8 through this, which hides distributions from it.
RUN = """\
import importlib.metadata, sys
hidden = set(sys.argv.pop(1).split(","))
real = importlib.metadata.distributions
importlib.metadata.distributions = lambda **k: [d for d in real(**k) if d.metadata["Name"].lower() not in hidden]
from flake8.main.cli import main
sys.exit(main(sys.argv[1:]))
"""
OURS, OTHERS = "jax-jitcache", "flake8-bugbear,torchfix"


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed; name packages that are")
    return Path(spec.origin).parent


def flake8(hidden: str, paths: list[Path]) -> tuple[float, float]:
    """Wall and processor seconds of one flake8 process."""
    command = [sys.executable, "-c", RUN, hidden, "--isolated", "-j1", "-q", *map(str, paths)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or done.stderr:
        raise SystemExit(f"flake8 failed: {done.stderr.strip().splitlines()[-1:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole_process(packages: list[str], rounds: int) -> None:
    paths = [folder_of(package) for package in packages]
    lines = sum(p.read_bytes().count(b"\n") for path in paths for p in path.rglob("*.py"))
    print(f"flake8 on {' and '.join(packages)} ({lines} lines), {rounds} rounds in turn, one process, best of each")
    without, with_ours = [], []
    for _ in range(rounds):
        without.append(flake8(f"{OURS},{OTHERS}", paths))
        with_ours.append(flake8(OTHERS, paths))
    for index, what in enumerate(("wall", "processor")):  # what follows uses the last
        bare, ours = (min(run[index] for run in runs) for runs in (without, with_ours))
        print(f"  {what:9}  without {bare:7.2f} s   with {ours:7.2f} s   ratio {ours / bare:.3f}")
    own = plugin_alone(paths)
    print(
        f"  the plugin by itself, on the same files: {own:.2f} s, {own / bare:.3f} of flake8's processor time without it"
    )


def plugin_alone(paths: list[Path]) -> float:
    """Processor seconds of the plugin alone: where two runs of flake8 differ by more than it takes, this tells."""
    spent = 0.0
    for file in sorted(file for path in paths for file in path.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        tree, lines = ast.parse(text), text.splitlines(keepends=True)
        begin = time.process_time()
        list(Plugin(tree, lines, str(file)).run())
        spent += time.process_time() - begin
    return spent


def without_a_jit(rounds: int = 30) -> None:
    lines = [f"def plain_{i}(x, y=None):\n    return x.compute(y, [x + {i}, 'text'])\n" for i in range(500)]
    lines = "".join(lines).splitlines(keepends=True)
    tree = ast.parse("".join(lines))

    def ours() -> None:
        assert list(Plugin(tree, lines, "plain.py").run()) == []

    spent = best(ours, rounds)
    parsed = best(lambda: ast.parse("".join(lines)), rounds)
    print(
        f"a file without a jit: {spent * 1e3 * 1000 / len(lines):.4f} ms per 1000 lines, {spent / parsed:.4f} of parsing"
    )


def best(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


HEAD = "import jax\n\n\n"
SHAPES: dict[str, Callable[[int], str]] = {
    "functions with the same local names": lambda n: (
        HEAD
        + "".join(f"def f{i}(x):\n    g = jax.jit(lambda v: v)\n    y = g(x)\n    return y\n" for i in range(n // 4))
    ),
    "methods of one name": lambda n: (
        HEAD
        + "".join(
            f"class C{i}:\n    def step(self, x):\n        y = self.step(x)\n        return jax.jit(self.step)(y)\n"
            for i in range(n // 4)
        )
    ),
    "one name rebound": lambda n: (
        HEAD + "def f(x):\n" + "".join("    g = jax.jit(lambda v: v)\n    x = g(x)\n" for _ in range(n // 2))
    ),
    "one name rebound in branches": lambda n: (
        HEAD
        + "def f(x):\n"
        + "".join("    if x:\n        g = jax.jit(lambda v: v)\n    x = g(x)\n" for _ in range(n // 3))
    ),
    "a chain of aliases": lambda n: (
        HEAD
        + "a0 = jax.jit\n"
        + "".join(f"a{i + 1} = a{i}\n" for i in range(n // 100))
        + f"def f(x):\n    return a{n // 100}(lambda v: v)(x)\n"
    ),
    "plain code with a jit": lambda n: (
        HEAD
        + "@jax.jit\ndef k(x):\n    return x\n\n\n"
        + "".join(f"def f{i}(x):\n    y = x + {i}\n    z = k(y)\n    return z\n" for i in range(n // 4))
    ),
}


def linearity(sizes: list[int]) -> None:
    print("linearity: microseconds per line by lines of the file, and the last against the first")
    print(f"  {'':38}" + "".join(f"{size:>9}" for size in sizes))
    for name, shape in SHAPES.items():
        per_line = []
        for size in sizes:
            source = shape(size)
            tree = ast.parse(source)
            lines = source.count("\n")
            gc.collect()
            gc.disable()
            per_line.append(best(lambda tree=tree: findings(tree, Options(), opt_in=False), 1) * 1e6 / lines)  # type: ignore[misc]
            gc.enable()
        cells = "".join(f"{value:9.1f}" for value in per_line)
        print(f"  {name:38}{cells}   x {per_line[-1] / per_line[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=["jax", "flax"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="smaller files, one round")
    options = parser.parse_args()
    os.environ.pop("PYTHONWARNINGS", None)
    without_a_jit()
    linearity([2_000, 20_000] if options.quick else [2_000, 20_000, 200_000])
    whole_process(options.packages, 1 if options.quick else options.rounds)


if __name__ == "__main__":
    main()
