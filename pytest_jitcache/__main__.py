"""`jitcache`, and `python -m pytest_jitcache`: watch a program, read what was seen, explain and fix."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

USAGE = """\
usage: jitcache run [options] script.py [arguments]
       jitcache run [options] -m package.module [arguments]
       jitcache report FILE ... [--html OUT]
       jitcache diff OLD NEW
       jitcache causes [WORD ...]
       jitcache names
       jitcache explain [CODE ...]
       jitcache fix [options] PATHS

run       run a program and watch what JAX traces and compiles in it; --help lists its options
report    the summary of what runs have written with --json, of several as one
diff      what is traced or compiled more often than before; status 1 where anything is
causes    each cause of a retrace: an example, what is said of it and what ends it
names     each private name of JAX that is read: where it is, since which version, and what is lost without it
explain   what a code of the linter finds, and what to write instead
fix       move the jit where it belongs"""


def main(argv: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status: 2 for a command that does not exist or can't run here."""
    command, rest = (argv[0], argv[1:]) if argv else ("", ())
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    if command not in _COMMANDS:
        allowed = ", ".join(_COMMANDS)
        print(f"no command {command!r}; allowed are {allowed}\n{USAGE}" if command else USAGE, file=sys.stderr)
        return 2
    extra, load = _COMMANDS[command]
    try:
        work = load()
    except ModuleNotFoundError as error:
        if error.name in ("pytest", "flake8", "ast_grep_py"):
            print(f"jitcache {command} needs {error.name}: pip install 'jax-jitcache[{extra}]'", file=sys.stderr)
            return 2
        raise
    return work(rest)


def console() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))


def _run() -> Callable[[Sequence[str]], int]:
    from pytest_jitcache.run.command import main

    return main


def _report() -> Callable[[Sequence[str]], int]:
    from pytest_jitcache.run.reports import report

    return report


def _diff() -> Callable[[Sequence[str]], int]:
    from pytest_jitcache.run.reports import diff

    return diff


def _causes() -> Callable[[Sequence[str]], int]:
    from pytest_jitcache.causes.page import main

    return main


def _names() -> Callable[[Sequence[str]], int]:
    from pytest_jitcache.jax.names import TABLE

    def show(_: Sequence[str]) -> int:
        print("\n".join(row.line() for row in TABLE))
        return 0

    return show


def _explain() -> Callable[[Sequence[str]], int]:
    from flake8_jitcache.explain import main

    return main


def _fix() -> Callable[[Sequence[str]], int]:
    import ast_grep_py  # noqa: F401
    import flake8  # noqa: F401

    from flake8_jitcache.fix import main

    return main


# The extra that a command needs, and what loads it.
_COMMANDS: dict[str, tuple[str, Callable[[], Callable[[Sequence[str]], int]]]] = {
    "run": ("pytest", _run),
    "report": ("pytest", _report),
    "diff": ("pytest", _diff),
    "causes": ("pytest", _causes),
    "names": ("pytest", _names),
    "explain": ("flake8", _explain),
    "fix": ("fix", _fix),
}

if __name__ == "__main__":
    console()
