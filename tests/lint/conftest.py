"""For the tests of rules: judge a piece of source by the `# expect:` comments in it."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable

import pytest

from flake8_jitcache.analysis import findings
from flake8_jitcache.options import Options

_EXPECT = re.compile(r"#\s*expect:\s*((?:JIT\d+\s*)+)$")


@pytest.fixture(scope="session")
def judge() -> Callable[..., None]:
    """A function that lints a source and asserts that each line gets exactly the codes that its comment expects.

    `only` is the beginning of the codes that are looked at.
    """

    def judge(source: str, options: Options | None = None, only: str = "JIT") -> None:
        source = textwrap.dedent(source).lstrip("\n")
        expected = [
            (number, code)
            for number, line in enumerate(source.splitlines(), 1)
            if (found := _EXPECT.search(line))
            for code in found.group(1).split()
        ]
        got = findings(ast.parse(source), options or Options())
        shown = [(f.line, f.code) for f in got if f.code.startswith(only)]
        assert shown == sorted(expected), "\n".join(f"{f.line}: {f.code} {f.text}" for f in got)

    return judge


@pytest.fixture(scope="session")
def text_of() -> Callable[[str], str]:
    """A function that gives the text of the one finding in a source, with its code."""

    def text_of(source: str) -> str:
        [finding] = findings(ast.parse(textwrap.dedent(source)), Options())
        return f"{finding.code} {finding.text}"

    return text_of
