"""The command line: `python -m flake8_jitcache fix [--diff | --write] [--unsafe] [--select CODES] [--output-format FORMAT] PATHS`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from flake8_jitcache.codes import FIXABLE

DESCRIPTION = """\
Move the jit where it belongs. Shows a diff unless --write is given. Which files, which excludes and which options: as
flake8 has them in its configuration; its own options work here too, with `=`
(--config=FILE, --exclude=PATTERNS, --jitcache-jit-names=NAMES ...).
`-` reads standard input and writes the fixed text; --stdin-display-name=FILE says which file it is."""
EPILOG = "Exit status: 1 where something is left to fix, 0 where nothing is, 2 on errors."


FORMATS = ("text", "json", "github", "sarif")


def main(argv: Sequence[str]) -> int:
    """Run `fix`. Returns the exit status: 1 where something is left to fix, 0 where nothing is, 2 on errors."""
    parser = argparse.ArgumentParser("python -m flake8_jitcache fix", description=DESCRIPTION, epilog=EPILOG)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--diff", action="store_true", help="show what would change, change nothing (the default)")
    how.add_argument("--write", action="store_true", help="change the files")
    parser.add_argument("--unsafe", action="store_true", help="make fixes that assume something about the values, too")
    parser.add_argument(
        "--select", metavar="CODES", action="append", help=f"fix these alone, of {FIXABLE[0]} to {FIXABLE[-1]}"
    )
    parser.add_argument(
        "--output-format",
        metavar="FORMAT",
        default="text",
        help="json, github or sarif: edits and what is left, on standard output in place of the diff or text",
    )
    parser.add_argument("paths", nargs="*", metavar="PATHS", help="files and folders; `.` where none is given")
    arguments, for_flake8 = parser.parse_known_args(argv)
    try:
        codes = _codes(arguments.select)
    except ValueError as error:
        return _fail(str(error))
    if "-" in arguments.paths and len(arguments.paths) > 1:
        return _fail("- (standard input) goes with no other path")
    if "-" in arguments.paths and arguments.write:
        return _fail("--write has no file to write for - (standard input)")
    if arguments.output_format not in FORMATS:
        return _fail(f"--output-format: {arguments.output_format!r} is no format; allowed are {', '.join(FORMATS)}")
    try:
        from flake8_jitcache.fix.run import Run
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("ast_grep_py", "flake8"):
            raise
        return _fail(f"{missing.name} is missing; install it with: pip install 'jax-jitcache[fix]'")
    return Run(
        paths=arguments.paths,
        codes=codes,
        unsafe=arguments.unsafe,
        write=arguments.write,
        diff=arguments.diff,
        form=arguments.output_format,
        for_flake8=for_flake8,
    ).run()


def _codes(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The codes that `--select` names, by prefix as in flake8; None where it was not given."""
    if given is None:
        return None
    prefixes = [part for one in given for part in one.replace(",", " ").split()]
    for prefix in prefixes:
        if not any(code.startswith(prefix) for code in FIXABLE):
            raise ValueError(f"--select: {prefix!r} fits no code that can be fixed; allowed are {', '.join(FIXABLE)}")
    return tuple(code for code in FIXABLE if code.startswith(tuple(prefixes)))


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2
