"""In a notebook: the magic in a real kernel, and the linter over the cells."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CELLS = [
    "%load_ext pytest_jitcache",
    "import jax\nimport jax.numpy as jnp\n\n\ndef total(x):\n    return jax.jit(lambda v: v.sum())(x)",
    "%%jitcache\nfor _ in range(3):\n    total(jnp.ones(3))\nprint('done')",
    "%%jitcache\n1 / 0",
]


def notebook(cells: list[str]) -> dict[str, object]:
    made = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
        for n, text in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def test_magic_shows_what_a_cell_traced():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.from_dict(notebook(CELLS))
    nbclient.NotebookClient(book, timeout=120, allow_errors=True).execute()
    outputs = book.cells[2].outputs
    assert [out.text for out in outputs if out.output_type == "stream" and out.name == "stdout"] == ["done\n"]
    [shown] = [out.data for out in outputs if out.output_type == "display_data"]
    assert "<td>3</td><td>2</td><td>1</td>" in shown["text/html"]  # traces, in vain, signatures
    assert "total.&lt;lambda&gt;" in shown["text/html"]
    assert "total.<lambda>" in shown["text/plain"]
    kinds = [out.output_type for out in book.cells[3].outputs]
    assert "error" in kinds
    assert "display_data" in kinds


def test_linter_runs_over_the_cells(tmp_path):
    pytest.importorskip("nbqa")
    (tmp_path / "book.ipynb").write_text(json.dumps(notebook(CELLS[1:2])))
    command = [sys.executable, "-m", "nbqa", "flake8", "book.ipynb", "--select=JIT"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "book.ipynb:cell_1:6:12: JIT101" in done.stdout, done.stdout + done.stderr
