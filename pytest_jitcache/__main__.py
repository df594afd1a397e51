"""`python -m pytest_jitcache causes` and `names`: the causes of a retrace, and the names of JAX that are read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE = """\
usage: python -m pytest_jitcache causes [WORD ...]
       python -m pytest_jitcache names

causes   each cause of a retrace: an example, what the guard says of it and what ends it; with words, those of that title
names    each private name of JAX that is read: where it is, since which version, and what is lost without it"""


def main(argv: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status: 2 for a command that does not exist."""
    command, rest = (argv[0], argv[1:]) if argv else ("", ())
    if command == "causes":
        from pytest_jitcache.causes.page import main as causes

        return causes(rest)
    if command == "names":
        from pytest_jitcache.jax.names import TABLE

        print("\n".join(row.line() for row in TABLE))
        return 0
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"no command {command!r}; allowed are causes, names\n{USAGE}" if command else USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
