"""In IPython and Jupyter: `%load_ext pytest_jitcache`, then `%%jitcache` over a cell."""

from __future__ import annotations

import io
from typing import Any

from pytest_jitcache.html.page import functions_table
from pytest_jitcache.run.screen import Screen
from pytest_jitcache.run.watching import Watch
from pytest_jitcache.suite import output_json, summary
from pytest_jitcache.suite.totals import Totals


class Seen:
    """What a cell traced and compiled: a table where the frontend shows HTML, the summary as text elsewhere."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def _repr_html_(self) -> str:
        return functions_table(output_json.document(self._totals))

    def __repr__(self) -> str:
        text = io.StringIO()
        summary.show(Screen(text, verbosity=-1), self._totals, summary.FUNCTIONS)
        return text.getvalue().rstrip()


def load(shell: Any) -> None:
    """Register the magic in a shell of IPython."""
    import importlib

    display: Any = importlib.import_module("IPython.display").display

    def jitcache(line: str, cell: str) -> None:
        watch = Watch("the cell", None)
        watch.begin()
        try:
            shell.run_cell(cell).raise_error()
        finally:
            display(Seen(watch.end()))

    shell.register_magic_function(jitcache, magic_kind="cell", magic_name="jitcache")
