"""Inline sources with the findings that they must get.

A text holds several sources, each under a line `== what it is about`. A line that ends with `# expect: JIT101` must get
exactly these findings, and with `# opt-in: JIT192` these of the codes that are off by default; every other line none.
The codes that are off by default are looked at where a source has an `# opt-in:` alone. A source that imports
nothing gets the imports of `PRELUDE`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from dataclasses import dataclass

from run_lint_cases import Findings, difference, marked

from flake8_jitcache.analysis import findings
from flake8_jitcache.codes import CODES
from flake8_jitcache.findings import Finding
from flake8_jitcache.options import Options

PRELUDE = """\
import functools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def stable(x):
    return x + 1


"""


@dataclass(frozen=True)
class Inline:
    """One source and what it is about."""

    about: str
    text: str

    @property
    def expected(self) -> Findings:
        return marked(self.text, "expect", "opt-in")

    @property
    def looks_at_opt_in(self) -> bool:
        return "# opt-in:" in self.text


def inline(text: str) -> list[Inline]:
    """The sources of a text."""
    parts = re.split(r"^== (.*)\n", text, flags=re.MULTILINE)
    assert not parts[0].strip(), "a text begins with a line `== what it is about`"
    found = []
    for about, body in zip(parts[1::2], parts[2::2], strict=True):
        imports = re.search(r"^ *(import|from) ", body, re.MULTILINE)
        found.append(Inline(about, body if imports else PRELUDE + body))
    return found


def all_findings(source: str, options: Options | None = None, filename: str = "module.py") -> list[Finding]:
    return findings(ast.parse(source), options or Options(), filename)


def found(item: Inline, options: Options | None = None, filename: str = "module.py") -> Findings:
    """The findings about lifetimes of a source, as (line, code)."""
    return Counter(
        (finding.line, finding.code)
        for finding in all_findings(item.text, options, filename)
        if finding.code.startswith("JIT1") and (CODES[finding.code].default or item.looks_at_opt_in)
    )


def judge(source: str, options: Options | None = None, only: str = "JIT") -> None:
    """Assert that each line of a source gets exactly the codes that its `# expect:` asks for.

    `only` is the beginning of the codes that are looked at; the source may be indented.
    """
    source = textwrap.dedent(source).lstrip("\n")
    got = all_findings(source, options)
    opt_in = "# opt-in:" in source
    shown = Counter(
        (finding.line, finding.code)
        for finding in got
        if finding.code.startswith(only) and (CODES[finding.code].default or opt_in or only == finding.code)
    )
    listed = "\n".join(f"{finding.line}: {finding.code} {finding.text}" for finding in got)
    assert difference(marked(source, "expect", "opt-in"), shown) == "", listed


def text_of(source: str, code: str = "JIT", options: Options | None = None) -> str:
    """The text of the one finding of a code, or of codes that begin so; with the code, where none is given."""
    texts = [
        finding.text if len(code) > 3 else f"{finding.code} {finding.text}"
        for finding in all_findings(textwrap.dedent(source), options)
        if finding.code.startswith(code)
    ]
    assert len(texts) == 1, texts
    return texts[0]
