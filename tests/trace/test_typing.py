"""The public API as type checkers see it, and as its documentation has it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_jitcache
from pytest_jitcache import Signature, Site, Trace, TraceRecord, traced_once
from pytest_jitcache.guard.options import Keywords, Options

# `# is TYPE`: what is revealed there. `# wrong`: an error. All other lines have none.
USER = """\
import jax
from pytest_jitcache import AssertTracedOnce, JitcacheWarning, RetraceError, Signature, Site, Trace, TraceRecord, traced_once


def scale(x: int, *, by: float = 1.0) -> str:
    return str(x * by)


class Model:
    def step(self, x: int) -> bytes:
        return bytes(x)


wrapped = traced_once(scale)
reveal_type(wrapped(1, by=2.0))  # is str
wrapped("one")  # wrong
wrapped(1, wrong=2)  # wrong
reveal_type(wrapped.traces)  # is TraceRecord
reveal_type(traced_once(Model().step)(3))  # is bytes
traced_once(jax.jit(scale))(1)

with traced_once(scale) as traces:
    reveal_type(traces)  # is TraceRecord
    reveal_type(traces[0])  # is Trace
    reveal_type(traces[0].cause)  # is str | None
    reveal_type(traces[0].signature)  # is Signature
    reveal_type(traces[0].call_site)  # is Site | None
with traced_once() as everything:
    reveal_type(everything.compiles)  # is list[Trace]
with traced_once(scale, Model().step, max_traces=2, per="definition", max_compiles=None, info="both"):
    pass

traced_once(scale, max_trace=2)  # wrong
traced_once(scale, per="call")  # wrong
traced_once(scale, max_traces="2")  # wrong
traced_once(3)  # wrong


def test_step(assert_traced_once: AssertTracedOnce) -> None:
    reveal_type(assert_traced_once(scale)(1))  # is str
    assert_traced_once(scale, max_trace=2)  # wrong
    with assert_traced_once() as traces:
        reveal_type(traces)  # is TraceRecord
    with assert_traced_once(scale, Model().step, per="total") as both:
        reveal_type(both)  # is TraceRecord


def keep(error: RetraceError, warning: JitcacheWarning) -> None:
    reveal_type(error.place)  # is str
"""


def expected(kind: str) -> dict[int, str]:
    marks = ((number, re.search(rf"# {kind}(?: (.*))?$", line)) for number, line in enumerate(USER.splitlines(), 1))
    return {number: mark.group(1) or "" for number, mark in marks if mark}


def bare(shown: str) -> str:
    """A type without the modules and quotes that a checker may show."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", shown.strip('"'))


def check(revealed: dict[int, str], errors: set[int]) -> None:
    assert {number: bare(shown) for number, shown in revealed.items()} == expected("is")
    assert errors == set(expected("wrong"))


def test_mypy(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = re.findall(r"^user\.py:(\d+): (\w+): (.*)$", done.stdout, re.MULTILINE)
    assert rows, done.stdout + done.stderr
    reveals = [(int(n), re.fullmatch(r'Revealed type is (".*")', text)) for n, _, text in rows]
    check({n: match.group(1) for n, match in reveals if match}, {int(n) for n, kind, _ in rows if kind == "error"})


def test_pyright(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = [
        (row["range"]["start"]["line"] + 1, row["severity"], row["message"])
        for row in json.loads(done.stdout)["generalDiagnostics"]
    ]
    reveals = [(n, re.fullmatch(r'Type of ".*" is (".*")', text)) for n, _, text in rows]
    check({n: match.group(1) for n, match in reveals if match}, {n for n, kind, _ in rows if kind == "error"})


def test_keywords_are_the_options() -> None:
    names = [field.name for field in dataclasses.fields(Options)]
    assert list(Keywords.__annotations__) == names
    parameters = inspect.signature(traced_once.__new__).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == names
    assert set(re.findall(r"^        (\w+): ", traced_once.__doc__ or "", re.MULTILINE)) >= {*names}


@pytest.mark.parametrize("kind", [Trace, Signature, Site, TraceRecord])
def test_each_public_field_is_documented(kind: type) -> None:
    fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else ["compiles"]
    documented = re.findall(r"^        (\w+): |`(\w+)`", kind.__doc__ or "", re.MULTILINE)
    assert {name for name in fields if not name.startswith("_")} <= {name for pair in documented for name in pair}


def test_all_that_is_public_is_there() -> None:
    for name in pytest_jitcache.__all__:
        assert getattr(pytest_jitcache, name).__module__.startswith("pytest_jitcache")
