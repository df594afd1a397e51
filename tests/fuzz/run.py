"""Runs random programs under the guard and says where the guard and the counter disagree.

`python tests/fuzz/run.py 0 3000` runs these seeds in one process; a disagreement is made smaller and its source printed.
`--pytest` runs each as a test of a real pytest.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import subprocess
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
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # what is compiled does not matter, only how often

import counting
import jax
import oracle
import programs

from pytest_jitcache import JitcacheWarning, RetraceError, traced_once

HERE = Path(__file__).resolve().parent


@dataclass
class Outcome:
    """What happened when a program ran."""

    error: object = None  # what the guard raised; its text counts
    escaped: bool = False  # an error of the program's own came out
    line: int = 0  # of the program, where the error came out
    noise: list[str] = field(default_factory=list)
    crash: str = ""
    ended: bool = False  # whether the guard saw the end of a test


def prepare() -> None:
    """What the plugin sets up once a process is set up, and what is there already is not looked at again."""
    with traced_once(max_traces=2):
        jax.jit(lambda x: x)(1.0)
    gc.collect()
    gc.freeze()


def judge(program: programs.Program, number: int = 0) -> list[str]:
    """Where the guard is wrong on this program, run in this process."""
    program = programs.unmarked(program)
    text = programs.source(program)
    try:
        record, outcome = _run(text, number)
    finally:
        jax.clear_caches()
    return _said(program, text, record, outcome)


def judge_all(seeds: range) -> dict[int, list[str]]:
    """Where the guard is wrong on the programs of these seeds, each run as a test of one pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = {seed: programs.random_program(seed) for seed in seeds}
        for seed, program in made.items():
            (folder / f"{programs.MODULE}_{seed}.py").write_text(programs.source(program, seed))
        (folder / "conftest.py").write_text((HERE / "reporting.py").read_text())
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", name, name]
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))} | {"PYTHONPATH": path}
        done = subprocess.run(command, cwd=name, env=env, capture_output=True, text=True, check=False)
        found: dict[int, list[str]] = {}
        for seed, program in made.items():
            report = folder / f"{programs.MODULE}_{seed}.json"
            if not report.exists():
                found[seed] = [f"crash: {done.stdout[-3000:]}"]
                continue
            told = json.loads(report.read_text())
            record = counting.Record()
            record.events = [counting.Event(e[0], str(e[1]), *e[2:]) for e in told["events"]]
            record.steps = {*told["steps"]}
            outcome = Outcome(told["error"], told["escaped"], told["line"], told["noise"], told["crash"], True)
            found[seed] = _said(program, programs.source(program, seed), record, outcome)
        return {seed: problems for seed, problems in found.items() if problems}


def _said(program: programs.Program, text: str, record: Any, outcome: Outcome) -> list[str]:
    if outcome.crash:
        return [f"crash: {outcome.crash}"]
    return oracle.disagreements(program, text, record, outcome)


def _run(text: str, number: int) -> tuple[Any, Outcome]:
    """The events of the program and what the guard said."""
    file = f"{programs.MODULE}_{number}.py"
    record, outcome = counting.reset(), Outcome()
    before = _hooks()
    module: dict[str, Any] = {"__name__": f"{programs.MODULE}_{number}", "__file__": file}
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            exec(compile(text, file, "exec"), module)  # noqa: S102
            module["before"]()
            module["drive"](traced_once)
        except RetraceError as error:
            outcome.error = error
            lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
            outcome.line = lines[-1] if lines else 0
            error.__traceback__ = None
        except counting.Oops:
            outcome.escaped = True
        except Exception:  # noqa: BLE001
            outcome.crash = traceback.format_exc()
    if printed.getvalue():
        outcome.noise.append(f"printed: {printed.getvalue()[:300]}")
    outcome.noise += [f"warned: {w.message}" for w in warned if issubclass(w.category, JitcacheWarning)]
    if not outcome.crash:
        outcome.noise += _kept(module, record)
    if _hooks() != before:
        outcome.noise.append(f"leak: {before} listeners and hooks before, {_hooks()} now")
    return record, outcome


def _hooks() -> tuple[object, ...]:
    """How many listen to JAX, and who sees each call of Python."""
    from jax._src import monitoring

    lists = (value for name, value in vars(monitoring).items() if name.endswith("_listeners"))
    return sum(len(value) for value in lists if isinstance(value, list)), sys.gettrace(), sys.getprofile()


def _kept(module: dict[str, Any], record: Any) -> list[str]:
    """What of the program lives on after it, while the error of the guard is still held."""
    drive = weakref.ref(module["drive"])
    record.kept.clear()
    module.clear()
    gc.collect()
    return ["leak: the function that held the guard"] if drive() is not None else []


def reduce(program: programs.Program, problems: list[str], seconds: float = 60) -> tuple[programs.Program, list[str]]:
    """The smallest program found that is judged wrongly in the same way."""
    end, again = time.monotonic() + seconds, True
    while again and time.monotonic() < end:
        again = False
        for one in programs.smaller(program):
            found = judge(one)
            if found and found[0].split(":")[0] == problems[0].split(":")[0]:
                program, problems, again = one, found, True
                break
    return program, problems


def main(first: int, last: int, *options: str) -> int:
    start = time.monotonic()
    if "--pytest" in options:
        wrong = judge_all(range(first, last))
        for seed, problems in wrong.items():
            print(f"--- seed {seed}: {problems}")
    else:
        prepare()
        wrong = {}
        for seed in range(first, last):
            program = programs.random_program(seed)
            problems = judge(program, seed)
            if problems:
                wrong[seed] = problems
                print(f"--- seed {seed}: {problems}", flush=True)
                if "--whole" not in options:
                    program, problems = reduce(programs.unmarked(program), problems)
                    print(f"{problems}\n{programs.source(program)}", flush=True)
    print(f"{last - first} programs, {len(wrong)} judged wrongly, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
