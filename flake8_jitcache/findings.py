"""What a rule reports, and the rule that one place gets one finding."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from flake8_jitcache.codes import CODES, rank


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
    """The findings in source order, of several at one place the one that ranks first.

    One about wrong results names the one about retracing as well: both are true, and their remedies differ.
    """
    places: dict[tuple[int, int], list[Finding]] = {}
    for finding in findings:
        places.setdefault((finding.line, finding.column), []).append(finding)
    found = []
    for place in sorted(places):
        first, *others = sorted(places[place], key=lambda finding: rank(finding.code))
        also = next((one for one in others if one.code[3] == "1" and CODES[one.code].default), None)
        if also is not None and first.code[3] == "2":
            first = replace(first, text=f"{first.text}. Besides, {also.code}: {also.text}")
        found.append(first)
    return found
