"""`python -m pytest_jitcache causes`: the page of all causes of a retrace."""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE = """\
usage: python -m pytest_jitcache causes [WORD ...]

causes   each cause of a retrace: an example, what the guard says of it and what ends it; with words, those of that title"""


def main(argv: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status: 2 for a command that does not exist."""
    command, rest = (argv[0], argv[1:]) if argv else ("", ())
    if command == "causes":
        from pytest_jitcache.causes.page import main as causes

        return causes(rest)
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"no command {command!r}; allowed is causes\n{USAGE}" if command else USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
