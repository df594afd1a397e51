"""Runs random programs under the guard and says where the guard and the counter disagree.

`python tests/fuzz/run.py 0 3000` runs these seeds; a disagreement is made smaller and its source printed.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import counting
import jax
import oracle
import programs

from pytest_jitcache import JitcacheWarning, RetraceError, traced_once

FOLDER = Path(tempfile.mkdtemp(prefix="jitcache-fuzz-"))


@dataclass
class Outcome:
    """What happened when a program ran."""

    error: RetraceError | None = None
    escaped: bool = False
    line: int = 0  # of the program, where the error came out
    steps_run: set[int] = field(default_factory=set)
    noise: list[str] = field(default_factory=list)
    crash: str = ""


def listeners() -> int:
    """How many listen to JAX."""
    from jax._src import monitoring

    return sum(len(value) for name, value in vars(monitoring).items() if name.endswith("_listeners") and isinstance(value, list))


def run(text: str, number: int = 0) -> tuple[Any, Outcome]:
    """The events of the program and what the guard said."""
    file = FOLDER / f"program_{number}.py"
    file.write_text(text)
    record, outcome = counting.reset(), Outcome()
    before = listeners(), sys.gettrace(), sys.getprofile()
    steps: set[int] = set()
    real_at = counting.at

    def at(step: int) -> None:
        steps.add(step)
        real_at(step)

    module: dict[str, Any] = {"__name__": f"program_{number}", "__file__": str(file)}
    printed = io.StringIO()
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        warnings.simplefilter("always")
        try:
            exec(compile(text, str(file), "exec"), module)
            module["at"], module["out"] = at, seen.append
            module["before"]()
            module["drive"](traced_once, lambda inner: None)
        except RetraceError as error:
            outcome.error = error
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
            outcome.line = lines[-1] if lines else 0
            error.__traceback__ = None
        except counting.Oops:
            outcome.escaped = True
        except Exception:
            outcome.crash = traceback.format_exc()
    outcome.steps_run = steps
    if printed.getvalue():
        outcome.noise.append(f"printed: {printed.getvalue()[:300]}")
    outcome.noise += [f"warned: {w.message}" for w in warned if issubclass(w.category, JitcacheWarning)]
    if (listeners(), sys.gettrace(), sys.getprofile()) != before:
        outcome.noise.append(f"leak: listeners, trace function and profiler {before} before, now {listeners(), sys.gettrace(), sys.getprofile()}")
    outcome.noise += [f"leak: {text}" for text in _kept(module, outcome, seen, record)]
    return record, outcome


def _kept(module: dict[str, Any], outcome: Outcome, seen: list[Any], record: Any) -> list[str]:
    """What of the program lives on after it, while the record of the guard is still held."""
    if outcome.crash or outcome.escaped:
        return []
    drive = weakref.ref(module["drive"])
    record.kept.clear()
    module.clear()
    gc.collect()
    return ["the function that held the guard"] if drive() is not None else []


def judge(program: programs.Program, number: int = 0) -> list[str]:
    """Where the guard is wrong on this program."""
    text = programs.source(program)
    try:
        record, outcome = run(text, number)
    finally:
        jax.clear_caches()
    if outcome.crash:
        return [f"crash: {outcome.crash}"]
    return oracle.disagreements(program, text, record, outcome)


def kind(problems: list[str]) -> str:
    return re.sub(r"\W.*", "", problems[0]) if problems else ""


def reduce(program: programs.Program, problems: list[str], seconds: float = 60) -> tuple[programs.Program, list[str]]:
    """The smallest program found that is judged wrongly in the same way."""
    end, again = time.monotonic() + seconds, True
    while again and time.monotonic() < end:
        again = False
        for one in programs.smaller(program):
            if time.monotonic() > end:
                break
            try:
                found = judge(one)
            except Exception:
                continue
            if found and found[0].split(":")[0] == problems[0].split(":")[0]:
                program, problems, again = one, found, True
                break
    return program, problems


def main(first: int, last: int, shrink: bool = True) -> int:
    with traced_once(max_traces=2):  # what the plugin sets up once a process is set up
        jax.jit(lambda x: x)(1.0)
    gc.collect()
    gc.freeze()
    wrong = 0
    start = time.monotonic()
    for seed in range(first, last):
        program = programs.random_program(seed)
        problems = judge(program, seed)
        if problems:
            wrong += 1
            print(f"--- seed {seed}: {problems}", flush=True)
            if shrink:
                program, problems = reduce(program, problems)
                print(f"{problems}\n{programs.source(program)}", flush=True)
    print(f"{last - first} programs, {wrong} judged wrongly, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), "--fast" not in sys.argv))
