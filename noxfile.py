"""The versions that are supported, run: `nox -s tests`, `nox -s cases`, `nox -s lint`; `nox -l` lists all.

One of them: `nox -s "tests(jax='0.5.3')"`. What stands after `--` goes to pytest. A session needs the Python it names on
the PATH, and the network.
"""

import nox

nox.options.sessions = ["tests", "cases", "lint"]
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

BESIDE = ["anyio", "hypothesis", "pytest-asyncio", "pytest-rerunfailures", "pytest-xdist"]
LIBRARIES = ["equinox", "flax"]

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


def install_jax(session: nox.Session, jax: str, *others: str) -> None:
    """The project beside one version of JAX and the pytest that goes with it in the table."""
    _, pytest = JAX[jax]
    wanted = "jax" if jax == "newest" else f"jax=={jax}"
    session.install(".[pytest]", wanted, f"pytest=={pytest}.*", *BESIDE, *others)
    session.run("python", "-c", "import jax, pytest; print('JAX', jax.__version__, 'pytest', pytest.__version__)")


@nox.session
@jax_versions
def tests(session: nox.Session, jax: str) -> None:
    """The tests of the fixture, and the example's own, with each JAX."""
    install_jax(session, jax)
    session.run("pytest", "-n", "2", "tests/pytest_jitcache", "example", *session.posargs, env={"JAX_PLATFORMS": "cpu"})


@nox.session
@jax_versions
def cases(session: nox.Session, jax: str) -> None:
    """Each trace case, with each JAX and the equinox and flax that go with it."""
    install_jax(session, jax, *LIBRARIES)
    session.run("pytest", "-n", "2", "tests/test_cases_trace.py", *session.posargs)


@nox.session
@flake8_versions
def lint(session: nox.Session, flake8: str) -> None:
    """The tests and cases of the linter, with each flake8 on each Python."""
    session.install(".[fix]", f"flake8=={flake8}.*", "pytest", "pytest-xdist", "hypothesis")
    session.run("flake8", "--version")
    session.run("pytest", "-n", "2", "tests/flake8_jitcache", "tests/test_cases_lint.py", *session.posargs)
