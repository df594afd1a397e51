"""The example passes both checks wherever it is copied to, and the demo tells right from wrong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def fill(folder: Path, *sources: str) -> None:
    for source in sources:
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The example, copied into somebody's project under another name."""
    fill(tmp_path, "example")
    return (tmp_path / "example").rename(tmp_path / "our_jits")


def make_the_jit_where_it_is_called(example: Path) -> None:
    """The change that the example's README suggests."""
    module = example / "jit_cached_call.py"
    right, wrong = "return _sum_of_squares(x)", "return jax.jit(lambda x: jnp.sum(x**2))(x)"
    assert module.read_text().count(right) == 1
    assert wrong in (example / "README.md").read_text()
    module.write_text(module.read_text().replace(right, wrong))


def test_copied_example_has_no_findings(copied: Path) -> None:
    done = run("flake8", ".", cwd=copied)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_copied_example_passes_its_tests(copied: Path) -> None:
    done = run("pytest", "-q", ".", cwd=copied)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout
    assert "skipped" not in done.stdout


def test_copied_example_passes_from_the_folder_above(copied: Path) -> None:
    done = run("pytest", "-q", copied.name, cwd=copied.parent)
    assert done.returncode == 0, done.stdout


def test_flake8_finds_the_fault_that_the_readme_suggests(copied: Path) -> None:
    make_the_jit_where_it_is_called(copied)
    done = run("flake8", "--format=%(path)s %(code)s", ".", cwd=copied)
    assert done.stdout.splitlines() == ["./jit_cached_call.py JIT101"]


def test_pytest_finds_the_fault_that_the_readme_suggests(copied: Path) -> None:
    make_the_jit_where_it_is_called(copied)
    done = run("pytest", "-q", "test_jit_cached_call.py", cwd=copied)
    failed = {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == {
        "test_traced_once_wrapped",
        "test_traced_once_in_a_block",
        "test_traced_once_for_each_length_wrapped",
        "test_traced_once_for_each_length_in_a_block",
    }


def test_demo_finds_the_faults_and_nothing_else() -> None:
    done = run("tests.demo", cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert done.stdout.count("--> As expected") == 4
    assert done.stdout.splitlines()[-1].startswith("All as expected")


def test_demo_fails_when_the_example_has_a_fault(tmp_path: Path) -> None:
    fill(tmp_path, "example", "tests/demo")
    make_the_jit_where_it_is_called(tmp_path / "example")
    done = run("tests.demo", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("--> NOT AS EXPECTED") == 2
    assert done.stdout.splitlines()[-1].startswith("Not as expected: 3 of 4")
