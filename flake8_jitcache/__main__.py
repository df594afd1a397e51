"""`python -m flake8_jitcache explain|fix`: what flake8 itself can't do."""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE = """\
usage: python -m flake8_jitcache explain [CODE ...]
       python -m flake8_jitcache fix [--diff | --write] [--unsafe] [--select CODES] PATHS

explain   what a code finds, why it matters and what to write instead; without a code, the list of all
fix       move the jit where it belongs (needs the extra `fix`)"""


def main(argv: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status: 2 for a command that does not exist."""
    command, rest = (argv[0], argv[1:]) if argv else ("", ())
    if command == "explain":
        from flake8_jitcache.explain import main as explain

        return explain(rest)
    if command == "fix":
        from flake8_jitcache.fix import main as fix

        return fix(rest)
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"no command {command!r}; allowed are explain and fix\n{USAGE}" if command else USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
