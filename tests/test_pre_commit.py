"""The hooks, and README's flake8 hook, under a real pre-commit that makes their environments. Needs the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent

FAULTY = """\
import jax


def double(x):
    return jax.jit(lambda v: v * 2)(x)
"""
FIXED = """\
import jax


@jax.jit
def _double(v):
    return v * 2


def double(x):
    return _double(x)
"""
REFUSED = """\
def double(x):
    import jax

    return jax.jit(lambda v: v * 2)(x)
"""


def git(folder: Path, *command: str) -> None:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "all")
    return folder


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree as a repository of its own, so that what is not committed is tried, too."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("flake8_jitcache", "pytest_jitcache"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return repository(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "faulty.py").write_text(FAULTY)
    (folder / "clean.py").write_text(FIXED)
    return repository(folder)


def pre_commit(project: Path, home: Path, *command: str) -> tuple[int, str]:
    """The exit status and output of pre-commit, in a project."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTEST_"))}
    env |= {"PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", *command],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_jitcache_hook_reports_the_finding(project: Path, hooks: Path, home: Path) -> None:
    status, output = pre_commit(project, home, "try-repo", str(hooks), "jitcache", "--all-files")
    assert status == 1
    assert re.findall(r"^(\w+\.py):(\d+):\d+: (\w+) ", output, re.MULTILINE) == [("faulty.py", "5", "JIT101")]
    assert (project / "faulty.py").read_text() == FAULTY


def test_fix_hook_fixes_what_it_can_and_fails_with_the_reason_of_the_rest(
    project: Path, hooks: Path, home: Path
) -> None:
    (project / "refused.py").write_text(REFUSED)
    git(project, "add", "-A")
    status, output = pre_commit(project, home, "try-repo", str(hooks), "jitcache-fix", "--all-files")
    assert status == 1
    assert "files were modified by this hook" in output
    assert "faulty.py: fixed JIT101" in output
    assert "refused.py:4: JIT101 not fixed: `jax` is imported inside `double`" in output
    assert (project / "faulty.py").read_text() == FIXED
    assert (project / "clean.py").read_text() == FIXED
    assert (project / "refused.py").read_text() == REFUSED


def test_flake8_hook_of_the_readme_reports_the_finding(project: Path, hooks: Path, home: Path) -> None:
    block = next(
        text
        for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "PyCQA/flake8" in text
    )
    hook = yaml.safe_load(block)[0]["hooks"][0]
    assert hook["id"] == "flake8"
    dependencies = [str(hooks) if name == "jax-jitcache" else name for name in hook["additional_dependencies"]]
    assert str(hooks) in dependencies
    local = {"id": "flake8", "name": "flake8", "entry": "flake8", "language": "python", "types": ["python"]}
    local["additional_dependencies"] = ["flake8", *dependencies]
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(project, "add", "-A")
    status, output = pre_commit(project, home, "run", "--all-files")
    assert status == 1
    assert re.findall(r"^(\w+\.py):(\d+):\d+: (JIT\d+) ", output, re.MULTILINE) == [("faulty.py", "5", "JIT101")]
