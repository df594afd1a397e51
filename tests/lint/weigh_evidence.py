"""How often each row of the table "does a function run once?" is right, over the labelled sources that we have.

Run: `python tests/lint/weigh_evidence.py`. A function with a line marked `# expect:` (JIT101 to JIT107) runs often; one
with a line marked `# opt-in: JIT191` runs once. For each row: how many functions it speaks for on the right side, how
many on the wrong one, and how many the table as a whole judges otherwise where the row holds.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "lint"), str(TESTS / "cases")]

from run_lint_cases import marked
from sources import PRELUDE, inline

from flake8_jitcache.facts.frequency import EVIDENCE
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition
from flake8_jitcache.options import Options

_TEXTS = re.compile(r'inline\("""\\?\n(.*?)"""\)', re.DOTALL)


def labelled_texts() -> Iterator[tuple[str, str]]:
    """The labelled sources, each with the name of its file."""
    for path in sorted((TESTS / "cases" / "lint").glob("*.py")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in sorted((TESTS / "lint").glob("test_*.py")):
        for text in _TEXTS.findall(path.read_text(encoding="utf-8")):
            for item in inline(text):
                yield "inline.py", item.text if "import" in item.text else PRELUDE + item.text


def labelled_functions(name: str, text: str) -> Iterator[tuple[Module, Definition, bool]]:
    """The labelled functions of a source that are weighed at all, and whether each runs often."""
    try:
        module = Module(ast.parse(text), Options(), name)
    except SyntaxError:
        return  # the syntax of a newer Python
    labels = marked(text, "expect", "opt-in")
    seen: dict[Definition, bool] = {}
    for creation in module.jits.creations:
        function, loop = place_of(module.source, creation.node).function, module.source.loop_around(creation.node)
        if not isinstance(function, DEFINITIONS) or loop is not None:
            continue
        codes = {code for line, code in labels if line == creation.node.lineno}
        if codes & {"JIT191"}:
            seen[function] = False
        elif any(code.startswith("JIT10") for code in codes):
            seen[function] = True
    for function, often in seen.items():
        yield module, function, often


def main() -> None:
    """Print the table."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    judged = agreed = 0
    for name, text in labelled_texts():
        for module, function, often in labelled_functions(name, text):
            judged += 1
            verdict_fits = module.frequency.runs_once(function) != often
            agreed += verdict_fits
            for evidence in EVIDENCE:
                if evidence.holds(module.frequency, function):
                    says_often = evidence.weight > 0
                    (right if says_often == often else wrong)[evidence.what] += 1
                    lost[evidence.what] += not verdict_fits
    print("weight right wrong  lost  what")
    for evidence in EVIDENCE:
        counts = (right[evidence.what], wrong[evidence.what], lost[evidence.what])
        print(f"{evidence.weight:6}" + "".join(f"{count:6}" for count in counts) + f"  {evidence.what}")
    print(f"{judged} labelled functions, of which {agreed} are judged as labelled")


if __name__ == "__main__":
    main()
