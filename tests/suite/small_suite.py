"""Runs pytest, in a process of its own, on a small suite written to a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

HEAD = """\
import functools
import jax
import jax.numpy as jnp
import pytest

def reverse(bits):
    return jax.jit(lambda b: b[::-1])(bits)

"""


@dataclass
class Run:
    """How a run ended, and what it left."""

    status: int
    output: str
    folder: Path

    @property
    def json(self) -> dict:
        return json.loads((self.folder / "run.json").read_text())

    def function(self, qualname: str) -> dict:
        """The one function of the JSON file with this qualified name, without `<locals>`."""
        found = [f for f in self.json["functions"] if f["qualname"].replace(".<locals>", "") == qualname]
        assert len(found) == 1, [f["qualname"] for f in self.json["functions"]]
        return found[0]

    @property
    def failed(self) -> list[str]:
        """The names of the tests that the short summary lists as failed."""
        lines = [line for line in self.output.splitlines() if line.startswith("FAILED ")]
        return [line.removeprefix("FAILED ").partition(" - ")[0].partition("::")[2] for line in lines]


class Suite:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", *args]

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_")) and k != "CI"}
        return {**kept, "JAX_PLATFORMS": "cpu", "COLUMNS": "150", "PYTHONDONTWRITEBYTECODE": "1"}

    def __call__(self, source: str | None, *args: str, head: str = HEAD) -> Run:
        """Run `source` (after `HEAD`) as test_it.py; the JSON file, if asked for, is run.json."""
        if source is not None:
            self.write("test_it.py", head + textwrap.dedent(source))
        done = subprocess.run(
            self.command(*args),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
        return Run(done.returncode, done.stdout + done.stderr, self.folder)
