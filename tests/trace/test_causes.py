"""The table of causes, walked: each is provoked with real JAX, and the page shows what the guard says of it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from pytest_jitcache import RetraceError
from pytest_jitcache.causes import CAUSES
from pytest_jitcache.causes.page import page, render
from pytest_jitcache.causes.table import PRELUDE

WITH_EXAMPLE = [name for name, cause in CAUSES.items() if cause.example]


def failure(name: str, folder: Path) -> str:
    """What the guard says of the example of a cause."""
    file = folder / "example.py"
    file.write_text(PRELUDE + CAUSES[name].example)
    with pytest.raises(RetraceError) as caught:
        runpy.run_path(str(file))
    return str(caught.value)


def section(name: str) -> str:
    [found] = re.findall(rf"^## (?:[^\n]* \({name}\)|{name})\n(.*?)(?=^## |\Z)", page(), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_example_of_a_cause_provokes_it(name, tmp_path, monkeypatch):
    if name == "mesh" and not hasattr(jax, "set_mesh"):
        pytest.skip("this JAX has no jax.set_mesh")
    monkeypatch.chdir(tmp_path)
    first = failure(name, tmp_path).partition("\n")[0]
    assert re.fullmatch(
        rf"\S+ (traced|compiled) (2x, allowed 1|1x, allowed 0): {re.escape(CAUSES[name].title)}( \(.*\))?", first
    )
    assert first.endswith(")") == (CAUSES[name].argument or CAUSES[name].title.endswith(")"))


@pytest.mark.skipif(jax.__version_info__[:2] != (0, 10), reason="the page shows how JAX 0.10 words it")
def test_page_shows_what_the_guard_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert page() == render({name: failure(name, tmp_path) for name in WITH_EXAMPLE})


def test_page_is_80_columns_wide():
    assert [line for line in page().splitlines() if len(line) > 80] == []


def test_only_the_cause_unknown_has_no_example():
    assert [name for name in CAUSES if name not in WITH_EXAMPLE] == ["unknown"]


def test_codes_of_the_table_are_codes_of_the_linter():
    from flake8_jitcache.codes import CODES
    from pytest_jitcache.causes.kinds import KINDS

    assert {code for cause in CAUSES.values() for code in cause.codes} | {k.code for k in KINDS.values()} <= {*CODES}


def causes(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_jitcache", "causes", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_command_prints_the_page_or_the_sections_asked_for():
    assert causes().stdout == page()
    assert causes("weak", "type").stdout.strip() == f"## weak type\n{section('weak type')}".strip()
    wrong = causes("nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("no cause 'nonsense'; the causes are:\n  JAX config\n")


if __name__ == "__main__":  # write the page anew
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        text = render({cause: failure(cause, Path(name)) for cause in WITH_EXAMPLE})
    (Path(__file__).parents[2] / "pytest_jitcache" / "causes" / "causes.md").write_text(text)
