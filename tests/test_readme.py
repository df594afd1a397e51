"""What README shows is what the tools print, and the commands that it gives are there once each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flake8_jitcache.codes import CODES

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()


def block(first_line: str) -> str:
    """The fenced block of README that begins with this line, without it."""
    [found] = re.findall(rf"^```\w+\n{re.escape(first_line)}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The modules that README shows, each with the line that names it."""
    for name in ["loss.py", "test_loss.py", "train.py"]:
        (tmp_path / name).write_text(f"# {name}\n{block(f'# {name}')}")
    return tmp_path


def printed(folder: Path, *command: str, errors: bool = False) -> str:
    """What a module prints when it is run, with its standard error last where that is asked for."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    text = done.stdout + (done.stderr if errors else "")
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def test_output_of_flake8(folder: Path) -> None:
    assert printed(folder, "flake8", "--select=JIT", "loss.py") == block("$ flake8 --select=JIT loss.py")


def test_output_of_pytest(folder: Path) -> None:
    shown = block("$ pytest test_loss.py")
    assert "RetraceError" in shown
    assert shown in printed(folder, "pytest", "test_loss.py")


def test_output_of_the_fixer(folder: Path) -> None:
    shown = block("$ python -m flake8_jitcache fix train.py")
    assert printed(folder, "flake8_jitcache", "fix", "train.py", errors=True) == shown


@pytest.mark.parametrize("last", [".venv/bin/python tests/demo", ".venv/bin/pytest -n 2"])
def test_each_of_the_two_commands_makes_its_own_environment(last: str) -> None:
    [command] = [line.strip() for line in README.splitlines() if line.endswith(f" && {last}")]
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_table_of_codes_is_that_of_the_linter() -> None:
    rows = re.findall(r"^\| (JIT\d+) \| `(.+?)` \| .* \| (on|off) \|$", README, re.MULTILINE)
    assert rows == [(code.code, code.name, "on" if code.default else "off") for code in CODES.values()]


def test_table_of_options_is_what_flake8_lists() -> None:
    help_text = printed(Path.cwd(), "flake8", "--help")
    listed = set(re.findall(r"--(jitcache-[a-z-]+)", help_text))
    assert listed
    assert set(re.findall(r"^\| `(jitcache-[a-z-]+)` \|", README, re.MULTILINE)) == listed
