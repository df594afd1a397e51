"""The supported versions, run: `nox -s trace` for those of JAX, `nox -s lint` for those of flake8. And what is given out:
`nox -s build` makes and tries the distribution, `nox -s docs` the documentation site.

One of them: `nox -s "trace(jax='0.5.3')"`. What stands after `--` goes to pytest in place of all tests of the session.
Each needs the network and, on the PATH, the Python that is named here.
"""

from pathlib import Path

import nox

nox.options.sessions = ["trace", "lint"]
nox.options.error_on_missing_interpreters = True

JAX = {
    # JAX: (Python, pytest)
    "0.4.35": ("3.10", "8"),
    "0.5.3": ("3.10", "9"),
    "0.6.2": ("3.10", "8"),
    "0.7.2": ("3.11", "9"),
    "0.8.3": ("3.11", "8"),
    "0.9.2": ("3.12", "9"),
    "0.10.2": ("3.11", "9"),
    "0.11.2": ("3.13", "8"),
    "0.12.0.1": ("3.12", "9"),
    "newest": ("3.13", "9"),
}
FLAKE8 = {
    # flake8: Pythons
    "6": ("3.10", "3.11"),
    "7": ("3.10", "3.11", "3.12", "3.13"),
}

BESIDE = ["anyio", "equinox", "flax", "hypothesis", "pytest-asyncio", "pytest-rerunfailures", "pytest-xdist"]
TRACE_TESTS = ["tests/trace", "tests/suite", "tests/test_cases_trace.py", "example"]
LINT_TESTS = ["tests/lint", "tests/test_opt_in.py", "tests/test_cases_lint.py"]

jax_versions = nox.parametrize(
    "python, jax", [nox.param(python, version, id=f"jax='{version}'") for version, (python, _) in JAX.items()]
)
flake8_versions = nox.parametrize(
    "python, flake8",
    [
        nox.param(python, version, id=f"flake8='{version}', python='{python}'")
        for version, pythons in FLAKE8.items()
        for python in pythons
    ],
)


@nox.session
@jax_versions
def trace(session: nox.Session, jax: str) -> None:
    """The tests of the fixture, its cases and the example, with each JAX and the equinox and flax that go with it."""
    _, pytest = JAX[jax]
    wanted = "jax" if jax == "newest" else f"jax=={jax}"
    subtests = ["pytest-subtests"] if pytest == "8" else []  # part of pytest 9
    session.install(".[pytest]", wanted, f"pytest=={pytest}.*", *BESIDE, *subtests)
    session.run("python", "-c", "import jax, pytest; print('JAX', jax.__version__, 'pytest', pytest.__version__)")
    everything = ["-m", "matrix or not matrix"]
    session.run("pytest", "-n", "2", *everything, *(session.posargs or TRACE_TESTS), env={"JAX_PLATFORMS": "cpu"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """3,000 random programs, of which each has to be judged as a count of the runs of its bodies says."""
    session.install(".[pytest]", *BESIDE)
    for first in range(0, 3000, 1000):
        session.run("python", "tests/fuzz/run.py", str(first), str(first + 1000))
    session.run("python", "tests/fuzz/run.py", "3000", "3100", "--pytest")


@nox.session
@flake8_versions
def lint(session: nox.Session, flake8: str) -> None:
    """The tests and cases of the linter, with each flake8 on each Python, and without JAX."""
    session.install(".[fix]", f"flake8=={flake8}.*", "pytest", "pytest-xdist", "hypothesis")
    session.run("flake8", "--version")
    session.run("pytest", "-n", "2", *(session.posargs or LINT_TESTS))


@nox.session(python="3.11")
def build(session: nox.Session) -> None:
    """The sdist and the wheel, checked, and README's snippets run from the wheel as it is installed with its extras."""
    dist = session.create_tmp() + "/dist"
    session.install("build", "hatchling", "twine")
    session.run("python", "-m", "build", "--outdir", dist)
    archives = sorted(str(path) for path in Path(dist).iterdir())
    session.run("twine", "check", "--strict", *archives)
    [wheel] = [path for path in archives if path.endswith(".whl")]
    session.install(f"{wheel}[flake8,fix,pytest]", "pytest-xdist")
    session.run("pytest", "-p", "no:cacheprovider", "tests/test_packaging.py", "tests/test_readme.py")


@nox.session(python="3.11")
def docs(session: nox.Session) -> None:
    """The documentation site, into build/site; a warning is an error."""
    session.install(".[docs]")
    session.run("mkdocs", "build", "--strict", "--config-file", ".docs/mkdocs.yml")
