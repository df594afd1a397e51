"""`jitcache run`, in processes of its own: the program runs as Python runs it, and what it retraces is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

TRAIN = """
import sys
import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.1 * x.sum(0)


def evaluate(w, x):
    return jax.jit(lambda v: (v @ w).mean())(x)


def main():
    w = jnp.ones(8)
    for epoch in range(3):
        for n in (32, 17):
            w = step(w, jnp.ones((n, 8)))
        print("epoch", epoch, float(evaluate(w, jnp.ones((4, 8)))) < 1e9)


if __name__ == "__main__":
    main()
"""
SEEN = "train.py:20: step traced again: shape (x) f32[32,8] -> f32[17,8]"


@pytest.fixture
def run(tmp_path: Path):
    """Runs `jitcache` with arguments in a folder that has train.py; more files by name."""

    def run(*arguments: str, python: tuple[str, ...] = (), **texts: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(TRAIN)
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        command = [sys.executable, *(python or ("-m", "pytest_jitcache")), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_watched_program_and_its_summary(run, tmp_path):
    done = run("run", "--json", "out.json", "--timeline", "t.json", "--html", "out.html", "train.py")
    assert done.returncode == 0
    assert done.stdout == "epoch 0 True\nepoch 1 True\nepoch 2 True\n"
    lines = done.stderr.splitlines()
    assert f"jitcache: {SEEN}" in lines
    assert "jitcache: train.py:13: <lambda> traced again: new function object" in lines
    assert any(re.search(r"\b3 +1 +2 +[\d.]+ +3 +1 +evaluate.<lambda>  train.py:13$", line) for line in lines)
    assert any("traced again: new function object; flake8 finds it as JIT101" in line for line in lines)
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["program"] == "train.py"
    assert {f["name"]: (f["traces"], f["wasted_traces"]) for f in written["functions"]} == {
        "step": (2, 0),
        "<lambda>": (3, 2),
    }
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "evaluate.&lt;lambda&gt;" in (tmp_path / "out.html").read_text()


def test_quiet_ends_with_one_line(run):
    lines = run("run", "--quiet", "train.py").stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("jitcache: ")
    assert "compiling" in lines[0]


WORLD = """
    import sys, os
    print(__name__, sys.argv, os.path.basename(sys.path[0]), sys.modules["__main__"].__file__, __file__)
    print([name for name in globals() if not name.startswith("__")])
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_program_sees_the_world_that_python_gives_it(run, tmp_path, as_module):
    arguments = ["-m", "world", "-m", "--quiet", "x"] if as_module else ["world.py", "-m", "--quiet", "x"]
    watched = run("run", *arguments, world=WORLD)
    alone = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert watched.stdout == alone.stdout


@pytest.mark.parametrize(
    ("ends", "status"),
    [("", 0), ("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1), ("raise ValueError(3)", 1), ("1 +", 1)],
)
def test_exit_status_and_traceback_are_pythons(run, tmp_path, ends, status):
    source = f"import sys\ndef f():\n    {ends or 'pass'}\nf()\n"
    watched = run("run", "it.py", it=source)
    alone = subprocess.run([sys.executable, "it.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (watched.returncode, alone.returncode) == (status, status)
    shown = watched.stderr.replace("jitcache: the program did not import JAX, so there was nothing to see\n", "")
    assert shown.replace(str(tmp_path) + os.sep, "") == alone.stderr.replace(str(tmp_path) + os.sep, "")
    assert "pytest_jitcache" not in watched.stderr


def test_summary_comes_after_an_exception_too(run):
    done = run("run", "fails.py", fails="import train\ntrain.main()\nraise KeyError('gone')\n")
    assert done.returncode == 1
    assert "KeyError: 'gone'" in done.stderr
    assert "evaluate.<lambda>" in done.stderr.partition("KeyError")[2]


def test_interrupt_ends_with_the_summary(run, tmp_path):
    run("causes")  # writes train.py
    (tmp_path / "sleeps.py").write_text(
        "import train, time\ntrain.main()\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-m", "pytest_jitcache", "run", "sleeps.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "KeyboardInterrupt" in err
    assert "evaluate.<lambda>" in err.partition("KeyboardInterrupt")[2]


STALE = """
    import jax
    RATE = 1.0

    @jax.jit
    def scale(x):
        return x * RATE

    scale(1.0)
    RATE = 2.0
    scale(1.0)
"""
WARM = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x):
        return x + 1

    def train_step(n):
        return step(jnp.zeros(n))

    for n in {sizes}:
        train_step(n)
"""


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("retrace", 3, "--fail-on retrace: 2 traces that had been made before"),
        ("stale", 0, ""),
        ("compile", 3, "compiles"),
    ],
)
def test_fail_on(run, fault, status, said):
    done = run("run", "--fail-on", fault, "train.py")
    assert done.returncode == status, done.stderr
    assert said in done.stderr


def test_fail_on_a_stale_value(run):
    done = run("run", "--fail-on", "stale", "it.py", it=STALE)
    assert done.returncode == 3
    assert "--fail-on stale: scale keeps a stale value: RATE (1.0 when traced, 2.0 now)" in done.stderr


def test_own_status_wins_over_fail_on(run):
    assert (
        run("run", "--fail-on", "retrace", "it.py", it="import train, sys\ntrain.main()\nsys.exit(9)\n").returncode == 9
    )


@pytest.mark.parametrize(("sizes", "status"), [((3, 4, 3, 4, 3), 0), ((3, 4, 3, 5), 3)])
def test_after_the_warm_up_everything_counts_and_nothing_before_it(run, sizes, status):
    done = run(
        "run", "--after-step", "2", "--step", "train_step", "--fail-on", "retrace", "it.py", it=WARM.format(sizes=sizes)
    )
    assert done.returncode == status, done.stderr
    assert ("--fail-on retrace: 1 traces after the warm-up" in done.stderr) == bool(status)


def test_warm_up_that_is_not_over_counts_nothing(run):
    done = run("run", "--warm-after", "1e6", "--fail-on", "compile", "train.py")
    assert done.returncode == 0
    assert "the program ended before its warm-up did, so nothing was counted" in done.stderr


def test_warm_after_seconds(run):
    assert run("run", "--warm-after", "0", "--fail-on", "compile", "train.py").returncode == 3


BAD = {
    "nothing given": ([], "no program was given; usage: jitcache run"),
    "no such script": (["nowhere.py"], "nowhere.py: no such file"),
    "a folder": (["."], ".: it is a folder"),
    "no such module": (["-m", "no_such_module"], "-m no_such_module: no module of that name"),
    "a folder as output": (["--json", ".", "train.py"], "can't be written: Is a directory"),
    "a file as a folder": (["--html", "train.py/out.html", "train.py"], "can't be written: "),
    "step without a name": (["--after-step", "3", "train.py"], "--after-step and --step go together"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_before_anything_runs(run, what):
    arguments, said = BAD[what]
    done = run("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--warm-after", "soon", "train.py"], "'soon' is no number of seconds from 0 up"),
        (["--after-step", "0", "train.py"], "'0' is no whole number from 1 up"),
        (["--fail-on", "luck", "train.py"], "invalid choice: 'luck'"),
        (["--no-such-option", "train.py"], "unrecognized arguments: --no-such-option"),
    ],
)
def test_bad_option_names_what_is_allowed(run, arguments, said):
    done = run("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_program_without_jax_keeps_its_status(run):
    done = run("run", "it.py", it="print(1)\nimport sys\nsys.exit(4)\n")
    assert (done.returncode, done.stdout) == (4, "1\n")
    assert done.stderr == "jitcache: the program did not import JAX, so there was nothing to see\n"


def test_no_command_and_a_wrong_one(run):
    assert run().returncode == 2
    done = run("walk")
    assert done.returncode == 2
    assert done.stderr.startswith("no command 'walk'; allowed are run, report, diff, causes, names, explain, fix\n")


def test_explain_and_fix_are_the_linters(run):
    assert run("explain", "JIT101").stdout.startswith("# JIT101: fresh-lambda")
    done = run("fix", "train.py")
    assert "JIT101 not fixed" in done.stderr + done.stdout or "+@jax.jit" in done.stdout


# -- several processes, and two runs


def test_two_processes_write_two_files_that_are_read_as_one(run, tmp_path):
    command = [sys.executable, "-m", "pytest_jitcache", "run", "--quiet", "--json", "out-%p.json", "train.py"]
    run("causes")
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    files = sorted(tmp_path.glob("out-*.json"))
    assert [path.name for path in files] == sorted(f"out-{process.pid}.json" for process in both)
    done = run("report", *map(str, files), "--html", "both.html")
    assert done.returncode == 0, done.stderr
    assert "in 2 workers" in done.stdout
    assert re.search(r" 6 +1 +4 .*evaluate.<lambda>", done.stdout)
    assert "2 processes" in (tmp_path / "both.html").read_text()


def test_report_of_a_file_is_the_summary_of_its_run(run):
    watched = run("run", "--json", "out.json", "train.py").stderr
    shown = run("report", "out.json").stdout
    table = [line for line in shown.splitlines() if "train.py:" in line]
    assert len(table) == 2
    for line in table:
        assert line in watched


def test_diff_says_what_is_traced_more_and_what_is_not(run):
    run("run", "--quiet", "--json", "old.json", "train.py")
    run(
        "run",
        "--quiet",
        "--json",
        "new.json",
        "more.py",
        more="import train, jax.numpy as jnp\ntrain.main()\ntrain.step(jnp.ones(8), jnp.ones((5, 8)))\n",
    )
    more = run("diff", "old.json", "new.json")
    assert more.returncode == 1
    assert re.search(
        r"^step in train.py: traces 2 -> 3, compiles 2 -> 3, [\d.]+ s -> [\d.]+ s$", more.stdout, re.MULTILINE
    )
    less = run("diff", "new.json", "old.json")
    assert less.returncode == 0
    assert "step in train.py: traces 3 -> 2" in less.stdout
    same = run("diff", "old.json", "old.json")
    assert (same.returncode, same.stdout) == (0, "nothing is traced or compiled more often than before\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "is no report: it is not JSON"),
        ("[]", 'is no report: it has no "schema": "jitcache-run"'),
        ('{"schema": "jitcache-run", "version": 99}', "has version 99; this jax-jitcache reads up to 1"),
        ('{"schema": "jitcache-run", "version": 1}', "a part of the report is missing"),
        (None, "No such file or directory"),
    ],
)
def test_file_that_is_no_report(run, tmp_path, text, said):
    if text is not None:
        (tmp_path / "bad.json").write_text(text)
    done = run("report", "bad.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_persistent_cache_is_told(run, tmp_path):
    source = f"""
        import jax
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path / "cache")!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.jit(lambda x: x * 3.25)(1.0)
    """
    first, second = run("run", "it.py", it=source), run("run", "it.py", it=source)
    assert re.search(r"persistent cache was asked for \d+ compiles: 0 served .*, [1-9]\d* written anew", first.stderr)
    assert re.search(
        r"persistent cache was asked for \d+ compiles: [1-9]\d* served \(which saved [\d.]+ s\)", second.stderr
    )
