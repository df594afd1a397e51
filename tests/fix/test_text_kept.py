"""What no fix covers stays byte for byte: encodings, line ends, BOM, tabs, white space, comments, quotes, file mode."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import pytest
from test_meaning import fix

from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, Grammar
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.source_file import SourceFile, Unreadable, write
from flake8_jitcache.options import Options

BEFORE = """\
# -*- coding: {coding} -*-
'''Caf\u00e9.'''
import jax   \n

NAME = 'caf\u00e9'  # "quotes"\t


def other( a,b ) :
    return a+b   # odd  spacing


def halve(x, k):
\x0c
    word = "\u00e9\u00e9"; y = jax.jit(lambda v: v * k)(x)  # \u00e9
    return y, word


class  Last :
    pass


"""
AFTER = BEFORE.replace(
    "def halve(x, k):", "@jax.jit\ndef _halve(v, k):\n    return v * k\n\n\ndef halve(x, k):"
).replace("jax.jit(lambda v: v * k)(x)", "_halve(x, k)")


def fixed_bytes(data: bytes) -> bytes:
    source = SourceFile.decode(data)
    done = fix(source.text)
    assert done.left == []
    return source.encode(done.text)


@pytest.mark.parametrize("coding", ["utf-8", "latin-1", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encoding_and_line_ends(coding: str, newline: str) -> None:
    before = BEFORE.format(coding=coding).replace("\n", newline).encode(coding)
    after = AFTER.format(coding=coding).replace("\n", newline).encode(coding)
    assert fixed_bytes(before) == after


def test_bom_stays() -> None:
    bom = b"\xef\xbb\xbf"
    before, after = BEFORE.format(coding="utf-8").encode(), AFTER.format(coding="utf-8").encode()
    assert fixed_bytes(bom + before) == bom + after


def test_tabs_and_a_last_line_without_end() -> None:
    before = "import jax\ndef f(x, k):\n\treturn jax.jit(lambda v: v * k)(x)"
    after = "import jax\n\n\n@jax.jit\ndef _f(v, k):\n\treturn v * k\n\n\ndef f(x, k):\n\treturn _f(x, k)"
    assert fixed_bytes(before.encode()) == after.encode()


def test_characters_outside_the_basic_plane() -> None:
    before = (
        "import jax\n\n\ndef f(x):\n    return '\U0001f600', jax.jit(lambda v: (v, '\U0001f600'))(x), '\U0001f600'\n"
    )
    after = fix(before.replace("(v, '\U0001f600')", "v")).text
    assert after.endswith("    return '\U0001f600', _f(x), '\U0001f600'\n")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# -*- coding: nonsense -*-\n", "can't be decoded: "),
        (b"x = '\xe9'\n", "can't be decoded: "),
        (b"\xef\xbb\xbf# -*- coding: latin-1 -*-\n", "has a BOM of UTF-8 and an encoding line that says "),
    ],
)
def test_what_python_can_not_decode_is_unreadable(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        SourceFile.decode(data)


def test_write_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "run.py"
    path.write_bytes(b"old")
    path.chmod(0o754)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["run.py"]


def test_write_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_bytes(b"old")
    (tmp_path / "link.py").symlink_to("real.py")
    write(tmp_path / "link.py", b"new")
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def test_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.py"
    path.write_bytes(b"old")

    def full(source: object, target: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.py"]


@pytest.mark.parametrize("broken", ["f(\n", "x = = g(1)\n"])
def test_error_node_is_seen(broken: str) -> None:
    document = Document("x = 1\n", Options())
    assert "can't parse" in Grammar(broken).misparsed(ast.parse("x = 1\n"), document.positions)


def test_call_that_one_parser_lacks_is_seen() -> None:
    text = "f(x)\ng(y)\n"
    document = Document(text, Options())
    assert Grammar(text).misparsed(document.tree, document.positions) == ""
    assert Grammar(text).misparsed(ast.parse("f(x)\ng[y]\n"), document.positions) == (
        "ast-grep reads the calls in line 2 differently from Python"
    )


def test_file_that_ast_grep_reads_differently_is_refused_and_not_damaged() -> None:
    text = "import jax\r\r\rdef f(x):\r    return jax.jit(lambda v: v)(x)\r"
    done = fix(text, unsafe=True)
    assert done.text == text
    assert [left.reason for left in done.left] == [
        "line ends are carriage returns alone, which ast-grep takes for white space"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import jax\n\n\ndef f(x):\n    y = [\n  1, 2]\n    return jax.jit(lambda v: v)(x), g(\ny)\n",
        "import jax\n\n\ndef f(*xs, **ks):\n    y = jax.jit(lambda *v: v)(*xs)\n    return y, g(*xs, **ks)\n",
    ],
)
def test_brackets_at_a_lower_indent_and_starred_calls_are_fixed_or_refused_whole(text: str) -> None:
    done = fix(text)
    if done.left:
        assert done.text == text
        assert "ast-grep" in done.left[0].reason
    else:
        tree = ast.parse(done.text)
        old = ast.parse(text)
        assert ast.dump(tree.body[0]) == ast.dump(old.body[0])
        assert ast.unparse(tree.body[-1]) == ast.unparse(old.body[-1]).replace("jax.jit(lambda v: v)", "_f").replace(
            "jax.jit(lambda *v: v)", "_f"
        )


def test_edits_change_what_they_say_alone() -> None:
    text = "\n\n  \n# \u00e9\nx = f( 1 )\r\n\n\n"
    grammar = Grammar(text)
    at = text.index("1")
    assert grammar.apply([Edit(at, at + 1, "2"), Edit(text.index("x"), text.index("x"), "y = ")]) == text.replace(
        "x = f( 1 )", "y = x = f( 2 )"
    )


def test_edits_outside_of_the_code_are_refused() -> None:
    with pytest.raises(Refused, match=r"^ast-grep sees no code there$"):
        Grammar("\n\nx = 1\n").apply([Edit(0, 0, "y = 2\n")])
