"""Fixes are made in rounds, each round all that do not touch, and taken back where one breaks a guarantee.

The guarantees of a round: what comes out parses, by Python and by ast-grep; each finding that was fixed is gone; no new
one appears. What breaks them in company is tried alone, and refused where it still does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from flake8_jitcache.codes import CODES
from flake8_jitcache.findings import Finding
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.planners import PLANNERS
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.options import Options

_MOST_ROUNDS = 200

Shown = Callable[[str, Finding], bool]
"""Whether a finding in a text is one that flake8 would show: by its selection, and not silenced by `# noqa`."""


@dataclass(frozen=True)
class Left:
    """A finding that is not fixed, by its line and column (1-based) in the text as it was given, and the reason."""

    line: int
    column: int
    code: str
    reason: str


@dataclass(frozen=True)
class Mended:
    """A finding that is fixed, by its line and column (1-based) in the text as it was given."""

    line: int
    column: int
    code: str


@dataclass
class Outcome:
    """What became of one text: what it is now, what was fixed, and what is left."""

    text: str
    mended: list[Mended] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)

    @property
    def fixed(self) -> Counter[str]:
        return Counter(one.code for one in self.mended)


def repair(
    text: str, options: Options, codes: Collection[str], *, unsafe: bool, shown: Shown, filename: str = ""
) -> Outcome:
    """Fix what can be fixed. Raises SyntaxError or ValueError where Python can't parse the text."""
    outcome = Outcome(text)
    document = Document(text, options, filename)
    banned: dict[tuple[str, str], str] = {}
    for _ in range(_MOST_ROUNDS):
        planned, refused = _plan(document, codes, unsafe, shown, banned)
        made = _make(document, planned, banned)
        if made is None:
            if planned:
                continue  # what was planned is banned now
            outcome.left = [
                Left(_original_line(text, document.text, finding.line), finding.column + 1, finding.code, reason)
                for finding, reason in refused
            ]
            break
        after, fixed = made
        outcome.mended += [
            Mended(_original_line(text, document.text, finding.line), finding.column + 1, finding.code)
            for finding in fixed
        ]
        document = after
    outcome.text = document.text
    return outcome


def _plan(
    document: Document, codes: Collection[str], unsafe: bool, shown: Shown, banned: dict[tuple[str, str], str]
) -> tuple[list[tuple[Finding, Fix]], list[tuple[Finding, str]]]:
    """One fix for each finding that has one and touches no other, and the reasons why the rest have none."""
    planned: list[tuple[Finding, Fix]] = []
    refused: list[tuple[Finding, str]] = []
    taken: set[str] = set()
    for finding in document.findings:
        if finding.code not in codes or finding.code not in PLANNERS or not shown(document.text, finding):
            continue
        reason = document.misparsed or banned.get(_key(document, finding), "")
        if not reason:
            try:
                names = set(taken)
                fix = PLANNERS[finding.code](Task(document, finding, document.lifetime(finding), names))
                if fix.assumptions and not unsafe:
                    raise Refused("needs --unsafe, which assumes that " + _listed(fix.assumptions))
                if not any(fix.touches(other) for _, other in planned):
                    planned.append((finding, fix))
                    taken = names
                continue
            except Refused as refusal:
                reason = str(refusal)
            except Exception as error:  # noqa: BLE001 - a fault of ours costs one fix, not the run
                reason = f"an internal error, please report it: {type(error).__name__}: {error}"
        refused.append((finding, reason))
    return planned, refused


def _listed(parts: list[str]) -> str:
    return ", and that ".join(dict.fromkeys(parts))


def _make(
    document: Document,
    planned: list[tuple[Finding, Fix]],
    banned: dict[tuple[str, str], str],
) -> tuple[Document, list[Finding]] | None:
    """Make the planned fixes at once; one by one where that breaks something. None where nothing could be made."""
    if not planned:
        return None
    together = _attempt(document, planned)
    if isinstance(together, Document):
        return together, [finding for finding, _ in planned]
    for finding, fix in planned:
        alone = _attempt(document, [(finding, fix)]) if len(planned) > 1 else together
        if isinstance(alone, Document):
            return alone, [finding]
        banned[_key(document, finding)] = alone
    return None


def _attempt(document: Document, planned: list[tuple[Finding, Fix]]) -> Document | str:
    """The document with fixes made, or which guarantee that would break."""
    try:
        text = document.grammar.apply([edit for _, fix in planned for edit in fix.edits])
        after = Document(text, document.options, document.filename)
    except Refused as refusal:
        return str(refusal)
    except (SyntaxError, ValueError) as error:
        return f"the fixed text would not parse: {error}"
    if after.misparsed:
        return f"of the fixed text, {after.misparsed}"
    before_counts, after_counts = _counts(document), _counts(after)
    for code, count in Counter(finding.code for finding, _ in planned).items():
        if after_counts[code] > before_counts[code] - count:
            return "the finding would still be there"
    new = after_counts - before_counts
    if new:
        return f"the fixed text would have a new finding, {min(new)}"
    return after


def _counts(document: Document) -> Counter[str]:
    return Counter(finding.code for finding in document.findings if CODES[finding.code].default)


def _key(document: Document, finding: Finding) -> tuple[str, str]:
    """What a finding is known by from one round to the next: its code and the text of its line."""
    return finding.code, document.positions.line(finding.line)


def _original_line(before: str, after: str, line: int) -> int:
    """The line of the first text that a line of the second one was."""
    if before == after:
        return line
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if j1 <= line - 1 < j2:
            return i1 + (line - 1 - j1) + 1 if tag == "equal" else min(i1 + (line - 1 - j1), max(i2 - 1, i1)) + 1
    return line
