"""A code that is off by default shows where it is asked for by name, and under no other option."""

import subprocess
import sys
from pathlib import Path

import pytest

KEPT = """\
import jax


def make(scale):
    return jax.jit(lambda x: scale * x)
"""


def codes(folder: Path, *options: str) -> list[str]:
    (folder / "kept.py").write_text(KEPT)
    command = [sys.executable, "-m", "flake8", "--isolated", "--format=%(code)s", *options, "kept.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--select=JIT",),
        ("--select=JIT1",),
        ("--extend-select=JIT",),
        ("--extend-select=JIT191",),
        ("--ignore=E203",),
        ("--ignore=",),
    ],
    ids=" ".join,
)
def test_silent(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert codes(tmp_path, *options) == []


@pytest.mark.parametrize(
    "options",
    [
        ("--extend-select=JIT192",),
        ("--extend-select=JIT19",),
        ("--select=JIT192",),
        ("--select=JIT,JIT192",),
        ("--ignore=E203", "--extend-select=JIT192"),
    ],
    ids=" ".join,
)
def test_shown(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert codes(tmp_path, *options) == ["JIT192"]


def test_ignored_wins_over_asked_for(tmp_path: Path) -> None:
    assert codes(tmp_path, "--extend-select=JIT19", "--extend-ignore=JIT192") == []
