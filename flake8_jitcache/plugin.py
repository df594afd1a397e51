"""What flake8 loads: the plugin class."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from flake8_jitcache.codes import CODES
from flake8_jitcache.options import BadOption, OptionManager, Options
from flake8_jitcache.prefilter import mentions_a_jit


class Plugin:
    """The flake8 plugin. Codes: see `flake8_jitcache.codes`."""

    name = "jax-jitcache"
    version = version("jax-jitcache")
    options: ClassVar[Options] = Options()
    asked_for: ClassVar[frozenset[str]] = frozenset()
    """The codes that are off by default and were asked for by name."""

    def __init__(self, tree: ast.Module, lines: Sequence[str] = (), filename: str = "") -> None:
        self._tree = tree
        self._lines = lines
        self._filename = filename

    @classmethod
    def add_options(cls, manager: OptionManager) -> None:
        """Register the options, and keep the codes that are off by default from showing unasked."""
        Options.register(manager)
        off = [code.code for code in CODES.values() if not code.default]
        manager.extend_default_ignore(off)

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Take over the options; a bad value ends flake8 with one line."""
        try:
            cls.options = Options.parse(options)
            cls.asked_for = asked_for([*(options.select or ()), *(options.extend_select or ())])
        except BadOption as bad:
            from flake8.exceptions import ExecutionError

            raise ExecutionError(str(bad)) from None

    def run(self) -> Iterator[tuple[int, int, str, type[Any]]]:
        """Yield flake8's (line, column, text, type) for each finding. Never raises: a bug of ours costs the findings
        of one family of rules in one file, and says so."""
        if self._filename.endswith(".pyi") or not mentions_a_jit(self._lines, self.options, self.asked_for):
            return
        from flake8_jitcache.analysis import findings

        found = findings(self._tree, self.options, self._filename, opt_in=bool(self.asked_for), complain=self._complain)
        for finding in found:
            if CODES[finding.code].default or finding.code in self.asked_for:
                yield finding.line, finding.column, f"{finding.code} {finding.text}", type(self)

    def _complain(self, error: Exception) -> None:
        print(
            f"jax-jitcache: {self._filename}: not all could be checked, a bug of ours: {type(error).__name__}: {error}",
            file=sys.stderr,
        )


def asked_for(selected: Sequence[str]) -> frozenset[str]:
    """The codes that are off by default and that a selected prefix names: one that names no code which is on.

    flake8 alone would show them all for `--select=JIT`, and for `--ignore=E203`, which replaces the ignored codes
    of all plugins.
    """
    on = [code.code for code in CODES.values() if code.default]
    off = [code.code for code in CODES.values() if not code.default]
    prefixes = tuple(prefix for prefix in selected if not any(code.startswith(prefix) for code in on))
    return frozenset(code for code in off if code.startswith(prefixes))
