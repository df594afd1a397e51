"""What a rule reports, and the rule that one place gets one finding."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from flake8_jitcache.codes import rank


@dataclass(frozen=True)
class Finding:
    """One finding: where it sits (1-based line, 0-based column), its code, its text without the code, and the node."""

    line: int
    column: int
    code: str
    text: str
    node: ast.AST

    @classmethod
    def at(cls, node: ast.AST, code: str, text: str) -> Finding:
        return cls(node.lineno, node.col_offset, code, text, node)  # type: ignore[attr-defined]


def one_a_place(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in source order, of several at one place the one that ranks first."""
    best: dict[tuple[int, int], Finding] = {}
    for finding in findings:
        place = finding.line, finding.column
        if place not in best or rank(finding.code) < rank(best[place].code):
            best[place] = finding
    return [best[place] for place in sorted(best)]
