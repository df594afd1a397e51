"""Inline sources with the findings that they must get.

A text holds several sources, each under a line `== what it is about`. A line that ends with `# expect: JIT101` must get
exactly these findings, and with `# opt-in: JIT192` these of the codes that are off by default; every other line none.
The codes that are off by default are looked at where a source has an `# opt-in:` alone. A source that imports
nothing gets the imports of `PRELUDE`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

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

_MARK = re.compile(r"#\s*(expect|opt-in):\s*((?:JIT\d+\s*)+)$")


@dataclass(frozen=True)
class Inline:
    """One source and what it is about."""

    about: str
    text: str

    @property
    def expected(self) -> Counter[tuple[int, str]]:
        return Counter(
            (number, code)
            for number, line in enumerate(self.text.split("\n"), 1)
            for found in [_MARK.search(line)]
            if found
            for code in found.group(2).split()
        )

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


def found(item: Inline, options: Options | None = None, filename: str = "module.py") -> Counter[tuple[int, str]]:
    """The findings about lifetimes of a source, as (line, code)."""
    return Counter(
        (finding.line, finding.code)
        for finding in all_findings(item.text, options, filename)
        if finding.code.startswith("JIT1") and (CODES[finding.code].default or item.looks_at_opt_in)
    )


def text_of(source: str, code: str, options: Options | None = None) -> str:
    """The text of the one finding of a code."""
    texts = [finding.text for finding in all_findings(source, options) if finding.code == code]
    assert len(texts) == 1, texts
    return texts[0]
