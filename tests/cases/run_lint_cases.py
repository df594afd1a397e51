#!/usr/bin/env python3
"""Run the lint cases of a folder through a real flake8 process and compare with their `# expect:` comments.

usage: run_lint_cases.py FOLDER [PYTHON] [--only=JIT1]
PYTHON: an interpreter with flake8 and the plugin; default: this one. --only: cases and findings of these codes alone.

Header of a case:  `# case: what it is about`, then optionally `# options: FLAKE8-OPTIONS`.
A line that ends with `# expect: JIT101 JIT107` must get exactly these codes; every other line must get none.
`py312_*.py` needs Python 3.12. Prints a line per difference and, last, `N of M hold`. Exit status 1 where one does not.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Findings = Counter[tuple[int, str]]
"""How often each (line, code) is found."""


_MARK = re.compile(r"#\s*([\w-]+):\s*((?:JIT\d+\s*)+)$")


class Flake8Broke(Exception):
    """flake8 itself failed, or wrote to its standard error."""


@dataclass(frozen=True)
class Case:
    """A file of a folder of cases, with what its comments say."""

    path: Path
    options: str
    expected: Findings

    @property
    def needs_python_312(self) -> bool:
        return self.path.name.startswith("py312_")


def marked(text: str, *words: str) -> Findings:
    """The findings that the comments of a text ask for: of lines that end with `# expect: JIT101`, or another of `words`."""
    return Counter(
        (number, code)
        for number, line in enumerate(text.split("\n"), 1)
        for mark in [_MARK.search(line)]
        if mark and mark.group(1) in (words or ("expect",))
        for code in mark.group(2).split()
    )


def read_text(path: Path) -> str:
    """A source as Python reads it: without a byte order mark, with plain line ends."""
    return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def read_case(path: Path) -> Case:
    text = read_text(path)
    options = next(
        (line.split(":", 1)[1].strip() for line in text.split("\n")[:4] if line.startswith("# options:")), ""
    )
    return Case(path, options, marked(text))


def read_cases(folder: Path) -> list[Case]:
    return [read_case(path) for path in sorted(folder.glob("*.py"))]


def run_flake8(python: str, options: str, paths: Iterable[Path]) -> dict[Path, Findings]:
    """What one flake8 process, with ``options`` and no configuration file, finds in each of ``paths``.

    Raises Flake8Broke where flake8 itself fails or writes to its standard error.
    """
    command = [python, "-m", "flake8", "--isolated", "--format=%(path)s\t%(row)d\t%(code)s", *shlex.split(options)]
    run = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1) or run.stderr.strip():
        why = run.stderr.strip().splitlines()[-1:] or [f"exit status {run.returncode}"]
        raise Flake8Broke(f"flake8 {options or '(no options)'}: {why[0]}")
    found: dict[Path, Findings] = defaultdict(Counter)
    for line in run.stdout.splitlines():
        path, row, code = line.split("\t")
        if code.startswith("JIT"):
            found[Path(path)][int(row), code] += 1
    return found


def difference(expected: Findings, found: Findings) -> str:
    """What was missed and what was false, in a line; empty where the two agree."""

    def listed(findings: Findings) -> str:
        return ", ".join(f"{code} at {line}" for line, code in sorted(findings.elements()))

    missed, false = listed(expected - found), listed(found - expected)
    return "; ".join(filter(None, [missed and f"missed {missed}", false and f"false {false}"]))


def only_codes(findings: Findings, prefix: str) -> Findings:
    return Counter({(line, code): n for (line, code), n in findings.items() if code.startswith(prefix)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("python", nargs="?", default=sys.executable)
    parser.add_argument("--only", default="JIT", help="look at the codes that begin with this alone")
    options = parser.parse_args()

    asked = [options.python, "-c", "import sys; print(sys.version_info >= (3, 12))"]
    has_312 = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == "True"
    cases = [case for case in read_cases(options.folder) if has_312 or not case.needs_python_312]
    groups: dict[str, list[Path]] = defaultdict(list)
    for case in cases:
        groups[case.options].append(case.path)

    found: dict[Path, Findings] = {}
    broken = False
    for flags, paths in groups.items():
        try:
            found.update(run_flake8(options.python, flags, paths))
        except Flake8Broke as error:
            broken = True
            print(error)
    held = 0
    for case in cases:
        got = only_codes(found.get(case.path, Counter()), options.only)
        differs = difference(only_codes(case.expected, options.only), got)
        held += not differs
        if differs:
            print(f"{case.path.name}: {differs}")
    print(f"{held} of {len(cases)} hold")
    return int(broken or held != len(cases) or not cases)


if __name__ == "__main__":
    sys.exit(main())
