"""No file makes the plugin raise, stop flake8 or slow it down out of proportion."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from sources import all_findings

from flake8_jitcache import analysis
from flake8_jitcache.facts.module import Module
from flake8_jitcache.options import Options
from flake8_jitcache.plugin import Plugin
from flake8_jitcache.rules import lifetimes

CASES = Path(__file__).resolve().parent.parent / "cases" / "lint"
FAULT = b"import jax\n\n\ndef hot(x):\n    return jax.jit(lambda v: v)(x)\n"


def flake8(*arguments: str, folder: Path, stdin: bytes | None = None) -> tuple[list[str], str]:
    command = [sys.executable, "-m", "flake8", "--isolated", "--format=%(path)s:%(row)d:%(col)d:%(code)s", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, input=stdin, check=False)
    return done.stdout.decode().splitlines(), done.stderr.decode()


def codes_of(content: bytes, folder: Path, name: str = "it.py") -> list[str]:
    """What a real flake8 says about a file, without the codes of layout."""
    (folder / name).write_bytes(content)
    lines, errors = flake8(name, folder=folder)
    assert errors == ""
    return [line for line in lines if ":JIT" in line or ":E9" in line]


# -------------------------------------------------------------------- files of all kinds


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (FAULT, ["it.py:5:12:JIT101"]),
        (b"", []),
        (b"\n", []),
        (b"\xef\xbb\xbf" + FAULT, ["it.py:5:12:JIT101"]),
        (FAULT.replace(b"\n", b"\r\n"), ["it.py:5:12:JIT101"]),
        (FAULT.replace(b"    ", b"\t"), ["it.py:5:9:JIT101"]),
        (FAULT.replace(b"\n\n\n", b"\n\x0c\n\n"), ["it.py:5:12:JIT101"]),
        (b"# -*- coding: latin-1 -*-\n" + FAULT + b"# \xe9\n", ["it.py:6:12:JIT101"]),
        (FAULT.replace(b"return", b"'\xc3\xa9\xe2\x82\xac'; return"), ["it.py:5:22:JIT101"]),
        (b"# \xff\xfe\n" + FAULT, ["it.py:6:12:JIT101"]),  # flake8 reads it as latin-1
        (FAULT.rstrip(), ["it.py:5:12:JIT101"]),
    ],
    ids=[
        "plain",
        "empty",
        "a line end",
        "BOM",
        "CRLF",
        "tabs",
        "form feed",
        "latin-1",
        "wide characters",
        "not UTF-8",
        "no line end",
    ],
)
def test_bytes(content: bytes, expected: list[str], tmp_path: Path) -> None:
    found = codes_of(content, tmp_path)
    if b"\xc3\xa9" in content:  # flake8 shows the column of the tree, which counts bytes
        assert [line.rpartition(":")[2] for line in found] == ["JIT101"]
    else:
        assert found == expected


def test_a_file_that_does_not_parse_gets_the_message_of_flake8_alone(tmp_path: Path) -> None:
    found = codes_of(FAULT + b"def (\n", tmp_path)
    assert [line.rpartition(":")[2] for line in found] == ["E999"]


def test_stub_files_are_silent(tmp_path: Path) -> None:
    assert codes_of(FAULT, tmp_path, "it.pyi") == []


def test_standard_input(tmp_path: Path) -> None:
    lines, errors = flake8("-", folder=tmp_path, stdin=FAULT)
    assert (lines, errors) == (["stdin:5:12:JIT101"], "")


def test_same_output_with_one_and_two_processes(tmp_path: Path) -> None:
    outputs = [flake8(f"-j{jobs}", "--select=JIT", str(CASES), folder=tmp_path) for jobs in (1, 2, 1)]
    assert sum(":JIT" in line for line in outputs[0][0]) > 50
    assert outputs[0] == outputs[1] == outputs[2]


# -------------------------------------------------------------------- deep files

HEAD = "import jax\nfrom functools import partial\n\n\n"
DEEP = {
    "a sum of 900": "def f(x):\n    return jax.jit(lambda v: " + "+".join(["v"] * 900) + ")(x)\n",
    "90 brackets": "def f(x):\n    return jax.jit(" + "(" * 90 + "lambda v: v" + ")" * 90 + ")(x)\n",
    "90 blocks": "def f(x):\n"
    + "".join(" " * (i + 1) + "if x:\n" for i in range(90))
    + " " * 91
    + "jax.jit(lambda v: v)(x)\n",
    "90 functions": "".join(" " * i + f"def f{i}(x):\n" for i in range(90)) + " " * 90 + "jax.jit(lambda v: v)(x)\n",
    "90 lambdas": "f = " + "lambda: " * 90 + "jax.jit(lambda v: v)(1)\n",
    "900 branches": "def f(x):\n    if x:\n        pass\n"
    + "".join(f"    elif x == {i}:\n        pass\n" for i in range(900))
    + "    else:\n        jax.jit(lambda v: v)(x)\n",
    "900 attributes": "def f(x):\n    return jax.jit(lambda v: v)(x" + ".a" * 900 + ")\n",
    "900 calls of a jit with options": "def f(x):\n    return jax.jit" + "(a=1)" * 900 + "(lambda v: v)(x)\n",
    "5000 aliases of jit": "a0 = jax.jit\n"
    + "".join(f"a{i + 1} = a{i}\n" for i in range(5000))
    + "def f(x):\n    return a5000(lambda v: v)(x)\n",
    "5000 partials of jit": "a0 = jax.jit\n"
    + "".join(f"a{i + 1} = partial(a{i}, a=1)\n" for i in range(5000))
    + "def f(x):\n    return a5000(lambda v: v)(x)\n",
    "5000 aliases of the target": "def f(x):\n    a0 = lambda v: v\n"
    + "".join(f"    a{i + 1} = a{i}\n" for i in range(5000))
    + "    return jax.jit(a5000)(x)\n",
    "3000 functions that call each other": "def a0(x):\n    return jax.jit(lambda v: v)(x)\n"
    + "".join(f"def a{i + 1}(x):\n    return a{i}(x)\n" for i in range(3000))
    + "for i in range(3):\n    a3000(i)\n",
    "5000 classes that derive from each other": "class A0:\n    def m(self):\n        return 1\n"
    + "".join(f"class A{i + 1}(A{i}):\n    pass\n" for i in range(5000))
    + "def f(x):\n    return jax.jit(A5000().m)(x)\n",
}


@pytest.mark.parametrize("what", DEEP)
def test_deep(what: str) -> None:
    limit = sys.getrecursionlimit()
    found = [finding.code for finding in all_findings(HEAD + DEEP[what]) if finding.code < "JIT191"]
    assert len(found) == 1
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "source",
    [
        "a = b\nb = a\ndef f(x):\n    return a(lambda v: v)(x)\n",
        "def f(x):\n    g = h\n    h = g\n    return jax.jit(g)(x)\n",
        "def f(x):\n    return f(jax.jit(f)(x))\n",
        "class A(A):\n    def m(self):\n        return jax.jit(self.m)(1)\n",
        "class A(B):\n    pass\nclass B(A):\n    def m(self):\n        return jax.jit(self.n)(1)\n",
        "f = lambda: jax.jit(f)(1)\n",
        "def f():\n    return f()\ndef g(x):\n    return jax.jit(f())(x)\n",
        "def f(g):\n    return f(g)\ndef h(x):\n    return f(jax.jit(lambda v: v))(x)\n",
        "x = x.x = jax.jit(x)(x)\n",
        "jit = partial(jit, jit)\njit(jit)(jit)\n",
    ],
)
def test_circles(source: str) -> None:
    all_findings(HEAD + source)  # must end


# -------------------------------------------------------------------- bugs of ours


def broken(of: analysis.Analysis) -> list[object]:
    raise ValueError("out of order")


def test_a_bug_of_a_family_loses_no_finding_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(analysis, "FAMILIES", (broken, *analysis.FAMILIES))
    text = FAULT.decode()
    lines = text.splitlines(keepends=True)
    found = list(Plugin(ast.parse(text), lines, "it.py").run())
    assert [(line, code.split()[0]) for line, _, code, _ in found] == [(5, "JIT101")]
    said = capsys.readouterr().err
    assert said == "jax-jitcache: it.py: not all could be checked, a bug of ours: ValueError: out of order\n"


def test_a_bug_shows_where_no_one_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "FAMILIES", (broken,))
    with pytest.raises(ValueError, match="out of order"):
        analysis.findings(ast.parse(FAULT), Options())


def test_recursion_without_end_is_said_and_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(module: Module) -> list[object]:
        return endless(module)

    monkeypatch.setattr(analysis, "FAMILIES", (endless,))
    text = FAULT.decode()
    assert list(Plugin(ast.parse(text), text.splitlines(keepends=True), "it.py").run()) == []
    assert "RecursionError" in capsys.readouterr().err


# -------------------------------------------------------------------- other people's code


@pytest.mark.parametrize("package", ["asyncio", "concurrent", "email", "importlib", "json", "unittest", "xml"])
def test_the_standard_library(package: str) -> None:
    folder = Path(sysconfig.get_path("stdlib")) / package
    files = sorted(folder.rglob("*.py"))
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert [f for f in all_findings(text, filename=str(path)) if f.code.startswith("JIT1")] == []


def test_places_are_valid() -> None:
    seen = 0
    for path in CASES.glob("*.py"):
        if path.name.startswith("py312") and sys.version_info < (3, 12):
            continue
        text = path.read_bytes().decode("utf-8-sig")
        lines = text.splitlines()
        for finding in all_findings(text):
            seen += 1
            assert 0 <= finding.column < len(lines[finding.line - 1].encode())
            assert not lines[finding.line - 1].encode()[: finding.column].strip().startswith(b"#")
    assert seen > 50


# -------------------------------------------------------------------- time

SHAPES = {
    "functions with the same local names": lambda n: "".join(
        f"def f{i}(x):\n    g = jax.jit(lambda v: v)\n    return g(x)\n" for i in range(n)
    ),
    "one name rebound": lambda n: "def f(x):\n" + "    g = jax.jit(lambda v: v)\n    x = g(x)\n" * n,
    "one name rebound in branches": lambda n: (
        "def f(x):\n" + "    if x:\n        g = jax.jit(lambda v: v)\n    x = g(x)\n" * n
    ),
    "methods of one name": lambda n: "".join(
        f"class C{i}:\n    def step(self, x):\n        return jax.jit(self.step)(self.step(x))\n" for i in range(n)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_lines_take_no_hundred_times_the_time(shape: str) -> None:
    def once(n: int) -> float:
        module = Module(ast.parse("import jax\n" + SHAPES[shape](n)), Options())
        begin = time.process_time()
        list(lifetimes.check(lifetimes.Lifetimes(module)))
        return time.process_time() - begin

    def seconds(n: int) -> float:
        return min(once(n) for _ in range(3))  # a busy machine makes one slow, and seldom all

    assert seconds(2000) < 50 * max(seconds(200), 0.002)
