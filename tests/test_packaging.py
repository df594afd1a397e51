"""The wheel and the sdist, installed into bare virtual environments, work from there. Needs the network for flake8 and pytest."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that has to succeed, away from the source tree, and return what it prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST_"))}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


class Environment:
    """A bare virtual environment in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def run_python(self, *arguments: str | Path) -> str:
        return run(self.python, *arguments, cwd=self.folder)

    def pip_install(self, *arguments: str | Path) -> None:
        self.run_python("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)

    def packages(self) -> set[str]:
        listed = self.run_python("-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
        return {line.split("==")[0].lower().replace("_", "-") for line in listed.splitlines()} - {"pip", "setuptools"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [path] = built.glob("jax_jitcache-*-py3-none-any.whl")
    return path


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    [path] = built.glob("jax_jitcache-*.tar.gz")
    return path


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


def test_wheel_holds_the_two_packages_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"flake8_jitcache", "pytest_jitcache"}
    assert {"flake8_jitcache/py.typed", "pytest_jitcache/py.typed", "flake8_jitcache/pages/JIT101.md"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_wheel_requires_nothing_without_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    requirements = metadata.get_all("Requires-Dist", [])
    assert requirements
    assert [line for line in requirements if "extra ==" not in line] == []
    assert set(metadata.get_all("Provides-Extra", [])) == {"flake8", "fix", "pytest", "docs", "dev"}


def test_sdist_holds_what_its_own_tests_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "noxfile.py",
        "example/.flake8",
        "example/jit_cached_call.py",
        "tests/demo/faulty/.flake8",
        "tests/cases/lint/crlf_lambda.py",
        "tests/cases/trace/test_plain_reuse.py",
    } <= names
    assert not any(part.startswith(".venv") or part == "__pycache__" for name in names for part in name.split("/"))


def test_changelog_tag_and_package_have_one_version(wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    released = re.findall(r"^## \[(\d.*)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [version for version, _ in released][:1] == [version]
    assert [day for _, day in released] == sorted((day for _, day in released), reverse=True)
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert [tag for tag in tags if tag.startswith("v")] in ([], [f"v{version}"])


def test_wheel_alone_pulls_no_dependency(environment: Environment, wheel: Path) -> None:
    environment.pip_install("--no-index", wheel)
    assert environment.packages() == {"jax-jitcache"}


def test_flake8_environment_has_the_plugin_and_no_jax(environment: Environment, sdist: Path) -> None:
    environment.pip_install(f"{sdist}[flake8]")
    assert environment.packages() == {"jax-jitcache", "flake8", "mccabe", "pycodestyle", "pyflakes"}
    assert "jax-jitcache" in environment.run_python("-m", "flake8", "--version")

    faulty = environment.folder / "faulty.py"
    shutil.copy(ROOT / "tests" / "demo" / "faulty" / "jit_fresh_calls.py", faulty)
    found = environment.run_python("-m", "flake8", "--select=JIT", "--exit-zero", "--format=%(code)s", faulty)
    assert found.split() == ["JIT101", "JIT103", "JIT106", "JIT201"]


def test_pytest_environment_has_the_fixture_and_needs_no_jax_to_load_it(environment: Environment, wheel: Path) -> None:
    environment.pip_install(wheel, "pytest")
    assert environment.packages().isdisjoint({"jax", "jaxlib", "flake8"})
    (environment.folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
    assert "assert_traced_once" in environment.run_python("-m", "pytest", "--fixtures", "test_nothing.py")
    assert "1 passed" in environment.run_python("-m", "pytest", "test_nothing.py")
    assert "1 passed" in environment.run_python("-m", "pytest", "--jitcache-summary", "test_nothing.py")
    (environment.folder / "program.py").write_text("print('ran')\n")
    shown = environment.run_python("-m", "pytest_jitcache", "run", "program.py")
    assert "ran\n" in shown
    assert "the program did not import JAX" in shown
