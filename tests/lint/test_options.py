"""The options of the lifetime rules: what each does, what `*` stands for, and what a bad value says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sources import Inline, found, inline

from flake8_jitcache.facts.names import pattern
from flake8_jitcache.options import Options


@pytest.mark.parametrize(
    ("given", "name", "matches"),
    [
        ("mylib.compiled", "mylib.compiled", True),
        ("mylib.compiled", "mylib.compiled.more", False),
        ("mylib.compiled", "other.mylib.compiled", False),
        ("mylib.*", "mylib.compiled", True),
        ("mylib.*", "mylib.a.b.compiled", True),
        ("mylib.*", "mylib", False),
        ("mylib.*.compiled", "mylib.a.b.compiled", True),
        ("mylib.*.compiled", "mylib.compiled", False),
        ("*.compiled", "mylib.compiled", True),
        ("*.compiled", "compiled", False),
        ("mylib.comp*", "mylib.compiled", True),
        ("mylib.comp*", "mylib.comp", True),
        ("mylib.comp*", "mylib.comp.iled", False),
        ("mylib.comp*", "mylib.accomplished", False),
    ],
)
def test_pattern(given: str, name: str, matches: bool) -> None:
    assert bool(pattern(given).fullmatch(name)) is matches


def one(text: str) -> Inline:
    return inline(f"== it\n{text}")[0]


def codes(text: str, options: Options) -> list[str]:
    return sorted(code for _, code in found(one(text), options).elements())


JITS = """\
from mylib import accel

def hot(x):
    return accel.compiled(lambda v: v + 1)(x)
"""
CACHED = """\
import jax
from mylib import memo

@memo.once
def table(k):
    return jax.jit(lambda v: v + k)(1.0)
"""
STAGE = """\
import jax

class Box:
    def stage(self, x):
        return jax.jit(lambda v: v + 1)(x)

def init_state(x):
    return jax.jit(lambda v: v + 1)(x)
"""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), []),
        (("mylib.accel.compiled",), ["JIT101"]),
        (("mylib.*",), ["JIT101"]),
        (("mylib.accel.comp*",), ["JIT101"]),
        (("mylib.accel.other",), []),
        (("compiled",), []),
    ],
)
def test_jit_names(names: tuple[str, ...], expected: list[str]) -> None:
    assert codes(JITS, Options(jit_names=names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("mylib.memo.once",), []), (("mylib.memo.*",), []), (("mylib.memo.twice",), ["JIT101"]), ((), ["JIT101"])],
)
def test_cache_decorators(names: tuple[str, ...], expected: list[str]) -> None:
    assert codes(CACHED, Options(cache_decorators=names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), ["JIT101"]),
        (("stage",), []),
        (("Box.stage",), []),
        (("Box.*",), []),
        (("st*",), []),
        (("Other.stage",), ["JIT101"]),
        (("age",), ["JIT101"]),
    ],
)
def test_run_once_names(names: tuple[str, ...], expected: list[str]) -> None:
    assert codes(STAGE, Options(run_once_names=names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [((), ["JIT101"]), (("init_state",), ["JIT101", "JIT101"]), (("init_*",), ["JIT101", "JIT101"])],
)
def test_hot_names(names: tuple[str, ...], expected: list[str]) -> None:
    assert codes(STAGE, Options(hot_names=names)) == expected


def test_hot_wins_over_run_once() -> None:
    assert codes(STAGE, Options(run_once_names=("stage",), hot_names=("stage",))) == ["JIT101"]


# -------------------------------------------------------------------- through the real flake8


def flake8(folder: Path, *arguments: str, config: str | None = None) -> subprocess.CompletedProcess[str]:
    (folder / "it.py").write_text(JITS)
    source = "--isolated"
    if config is not None:
        (folder / "flake8.cfg").write_text(f"[flake8]\n{config}\n")
        source = "--config=flake8.cfg"
    command = [sys.executable, "-m", "flake8", source, "--select=JIT", "--format=%(code)s", *arguments, "it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_on_the_command_line(tmp_path: Path) -> None:
    done = flake8(tmp_path, "--jitcache-jit-names=other.jit,mylib.accel.compiled")
    assert (done.stdout.split(), done.stderr) == (["JIT101"], "")


def test_in_the_configuration_file(tmp_path: Path) -> None:
    done = flake8(tmp_path, config="jitcache-jit-names =\n    other.jit,\n    mylib.accel.*\n")
    assert (done.stdout.split(), done.stderr) == (["JIT101"], "")


@pytest.mark.parametrize("option", ["jit-names", "cache-decorators", "run-once-names", "hot-names"])
def test_bad_name_on_the_command_line(tmp_path: Path, option: str) -> None:
    done = flake8(tmp_path, f"--jitcache-{option}=fine.name,1st..bad")
    assert done.returncode == 1
    said = [line for line in (done.stdout + done.stderr).splitlines() if "jitcache" in line]
    assert len(said) == 1
    assert f"--jitcache-{option}: '1st..bad' is not a dotted name; allowed are" in said[0]
    assert "Traceback" not in done.stdout + done.stderr


def test_bad_name_in_the_configuration_file(tmp_path: Path) -> None:
    done = flake8(tmp_path, config="jitcache-hot-names = a.**\n")
    assert done.returncode == 1
    said = [line for line in (done.stdout + done.stderr).splitlines() if "jitcache" in line]
    assert len(said) == 1
    assert "--jitcache-hot-names: 'a.**' is not a dotted name; allowed are" in said[0]
