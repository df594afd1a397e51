"""From the cause of a retrace to the code of the static rule (`flake8_jitcache`) that finds it in the source.

The cause tells which rule it may be; the linter itself, run on the file, tells whether that rule speaks there.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from pytest_jitcache.causes import CAUSES, Difference
from pytest_jitcache.causes.kinds import kind_of
from pytest_jitcache.recorder import Trace


def rule(trace: Trace, difference: Difference) -> str | None:
    """The code of the rule, or None where reading the source doesn't find it."""
    codes = _codes(trace, difference)
    if not codes:
        return None
    places = [(trace.filename, trace.line)]
    if trace.call_site is not None:
        places.append((trace.call_site.filename, trace.call_site.line))
    found = {code for filename, line in places for code in _Linted.of(filename).codes_around(line)}
    return next((code for code in codes if code in found), None)


def is_on(code: str) -> bool:
    """Whether flake8 shows a code without being asked for it."""
    from flake8_jitcache.codes import CODES

    return CODES[code].default


def _codes(trace: Trace, difference: Difference) -> tuple[str, ...]:
    """The codes that a cause may have in the source, the likeliest first."""
    codes = CAUSES[difference.cause].codes
    return (kind_of(trace).code, *codes) if difference.cause == "function" else codes


class _Linted:
    """What the linter says about one file.

    Attributes:
        findings: the line and the code of each finding.
        functions: the first and the last line of each function that is in no other one.
    """

    def __init__(self, filename: str) -> None:
        self.findings: list[tuple[int, str]] = []
        self.functions: list[tuple[int, int]] = []
        try:
            from flake8_jitcache.analysis import findings
            from flake8_jitcache.options import Options

            tree = ast.parse(Path(filename).read_bytes())
            self.findings = [(one.line, one.code) for one in findings(tree, Options(), filename)]
            self._find_functions(tree)
        except Exception:  # no such file, as for code from a string, or none that can be read
            return

    @classmethod
    @functools.cache
    def of(cls, filename: str) -> _Linted:
        return cls(filename)

    def _find_functions(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                self.functions.append((first, child.end_lineno or first))
            else:
                self._find_functions(child)

    def codes_around(self, line: int) -> set[str]:
        """The codes of the findings in the function that a line is in, or else on that line."""
        first, last = next(((a, b) for a, b in self.functions if a <= line <= b), (line, line))
        return {code for at, code in self.findings if first <= at <= last}
