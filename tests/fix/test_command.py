"""`python -m flake8_jitcache fix` as a process: what it prints, writes and returns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = """\
import jax


def double(x):
    return jax.jit(lambda v: v * 2)(x)
"""
FIXED = """\
import jax


@jax.jit
def _double(v):
    return v * 2


def double(x):
    return _double(x)
"""
REFUSED = """\
def double(x):
    import jax

    return jax.jit(lambda v: v * 2)(x)
"""
UNSAFE = """\
import jax


def double(x, deep):
    return jax.jit(lambda v: v * 2 if deep else v)(x)
"""
REASON = "`jax` is imported inside `double`; at module level it would be needed at import"


def run(
    folder: Path, *arguments: str, data: bytes | None = None, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """The exit status, standard output and standard error of one run."""
    done = subprocess.run(
        [sys.executable, "-m", "flake8_jitcache", "fix", *arguments],
        cwd=folder,
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        env={**os.environ, **(env or {})},
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "clean.py").write_text(FIXED)
    return tmp_path


def test_diff_is_the_default_and_changes_nothing(folder: Path) -> None:
    status, out, err = run(folder)
    assert status == 1
    assert out.startswith("--- a/faulty.py\n+++ b/faulty.py\n@@ ")
    assert "\x1b" not in out
    assert err == "1 can be fixed\n"
    assert (folder / "faulty.py").read_text() == FAULTY
    assert run(folder, "--diff") == (status, out, err)


def test_diff_applies(folder: Path) -> None:
    _, out, _ = run(folder)
    subprocess.run(["git", "apply", "-"], cwd=folder, input=out.encode(), check=True)
    assert (folder / "faulty.py").read_text() == FIXED


def test_diff_of_a_file_without_a_last_line_end_applies(folder: Path) -> None:
    (folder / "faulty.py").write_text(FAULTY.rstrip("\n"))
    _, out, _ = run(folder)
    subprocess.run(["git", "apply", "-"], cwd=folder, input=out.encode(), check=True)
    assert (folder / "faulty.py").read_text() == FIXED.rstrip("\n")


def test_write_fixes_and_leaves_nothing(folder: Path) -> None:
    assert run(folder, "--write", ".") == (0, "", "./faulty.py: fixed JIT101\n1 fixed\n")
    assert (folder / "faulty.py").read_text() == FIXED
    assert run(folder, "--write", ".") == (0, "", "")
    assert run(folder, ".") == (0, "", "")


def test_write_fails_where_something_is_left(folder: Path) -> None:
    (folder / "faulty.py").write_text(REFUSED)
    assert run(folder, "--write", "faulty.py") == (1, "", f"faulty.py:4: JIT101 not fixed: {REASON}\n1 left\n")


def test_unsafe_says_what_it_assumes(folder: Path) -> None:
    (folder / "faulty.py").write_text(UNSAFE)
    status, _, err = run(folder, "--write", "faulty.py")
    assert status == 1
    assert "faulty.py:5: JIT101 not fixed: needs --unsafe, which assumes that `deep` is hashable\n" in err
    assert run(folder, "--write", "--unsafe", "faulty.py")[0] == 0
    assert 'static_argnames="deep"' in (folder / "faulty.py").read_text()


def test_standard_input_comes_out_fixed(folder: Path) -> None:
    assert run(folder, "-", data=FAULTY.encode()) == (0, FIXED, "1 fixed\n")
    assert run(folder, "-", data=FIXED.encode()) == (0, FIXED, "")
    assert run(folder, "-", data=REFUSED.encode()) == (1, REFUSED, f"stdin:4: JIT101 not fixed: {REASON}\n1 left\n")


def test_standard_input_keeps_line_ends_and_what_is_no_python(folder: Path) -> None:
    crlf = FAULTY.replace("\n", "\r\n").encode()
    assert run(folder, "-", data=crlf)[1] == FIXED.replace("\n", "\r\n")
    status, out, err = run(folder, "-", data=b"import jax\nx = = jax.jit(f)\n")
    assert (status, out) == (2, "import jax\nx = = jax.jit(f)\n")
    assert err == "error: stdin: Python can't parse it: invalid syntax (line 2)\n"


def test_standard_input_as_a_diff(folder: Path) -> None:
    status, out, _ = run(folder, "--diff", "-", data=FAULTY.encode())
    assert status == 1
    assert out.startswith("--- a/stdin\n+++ b/stdin\n")


def test_select_narrows_the_codes(folder: Path) -> None:
    assert run(folder, "--select", "JIT103,JIT107") == (0, "", "")
    assert run(folder, "--select=JIT101")[0] == 1
    assert run(folder, "--select=JIT10")[0] == 1


@pytest.mark.parametrize("code", ["JIT191", "JIT201", "E501", "X"])
def test_select_of_a_code_that_can_not_be_fixed_is_an_error(folder: Path, code: str) -> None:
    status, out, err = run(folder, "--select", code)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: --select: '{code}' fits no code that can be fixed; allowed are JIT101, ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "faulty.py"], "error: - (standard input) goes with no other path\n"),
        (["--write", "-"], "error: --write has no file to write for - (standard input)\n"),
        (["nowhere.py"], "error: nowhere.py: No such file or directory\n"),
        (
            ["--jitcache-jit-names=3x"],
            (
                "error: --jitcache-jit-names: '3x' is not a dotted name; allowed are names such as pkg.module.function, "
                "with * for one or more parts or for the end of one\n"
            ),
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder: Path, arguments: list[str], message: str) -> None:
    assert run(folder, *arguments) == (2, "", message)


def test_one_broken_file_does_not_stop_the_rest(folder: Path) -> None:
    (folder / "broken.py").write_text("import jax\n@jax.jit\ndef f(:\n")
    (folder / "binary.py").write_bytes(b"import jax\n\xff\xfe\n")
    status, _, err = run(folder, "--write")
    assert status == 2
    assert "error: ./broken.py: Python can't parse it: invalid syntax (line 3)\n" in err
    assert "error: ./binary.py: can't be decoded: " in err
    assert (folder / "faulty.py").read_text() == FIXED


def test_flake8_configuration_holds(folder: Path) -> None:
    (folder / "skipped").mkdir()
    (folder / "skipped" / "a.py").write_text(FAULTY)
    (folder / "accel.py").write_text(FAULTY.replace("import jax", "from my import fast").replace("jax.jit", "fast"))
    (folder / ".flake8").write_text("[flake8]\nexclude = skipped,clean.py\njitcache-jit-names = my.fast\n")
    status, out, err = run(folder, "--write")
    assert (status, out) == (0, "")
    assert sorted(err.splitlines()) == ["./accel.py: fixed JIT101", "./faulty.py: fixed JIT101", "2 fixed"]
    assert (folder / "skipped" / "a.py").read_text() == FAULTY
    assert "@fast\ndef _double(v):" in (folder / "accel.py").read_text()


@pytest.mark.parametrize(
    "configuration",
    ["ignore = JIT101", "extend-ignore = JIT1", "per-file-ignores = faulty.py:JIT101", "select = E,F"],
)
def test_what_flake8_does_not_show_is_not_fixed(folder: Path, configuration: str) -> None:
    (folder / ".flake8").write_text(f"[flake8]\n{configuration}\n")
    assert run(folder) == (0, "", "")
    assert run(folder, "--select=JIT101")[0] == 1


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: JIT101", "# NOQA:E501,JIT1"])
def test_noqa_is_respected(folder: Path, comment: str) -> None:
    (folder / "faulty.py").write_text(FAULTY.rstrip("\n") + f"  {comment}\n")
    assert run(folder) == (0, "", "")


def test_noqa_of_another_code_is_not(folder: Path) -> None:
    (folder / "faulty.py").write_text(FAULTY.rstrip("\n") + "  # noqa: E501\n")
    assert run(folder)[0] == 1


def test_file_wide_noqa_is_respected(folder: Path) -> None:
    (folder / "faulty.py").write_text("# flake8: noqa\n" + FAULTY)
    assert run(folder) == (0, "", "")


def test_missing_extra_is_named(folder: Path) -> None:
    (folder / "ast_grep_py.py").write_text("raise ModuleNotFoundError(\"No module\", name='ast_grep_py')\n")
    status, out, err = run(folder, env={"PYTHONPATH": str(folder)})
    assert (status, out) == (2, "")
    assert err == "error: ast_grep_py is missing; install it with: pip install 'jax-jitcache[fix]'\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_terminal_gets_colours_and_a_progress_line(folder: Path) -> None:
    import pty

    for number in range(400):
        (folder / f"more{number}.py").write_text(f"from jax import jit\nx = {list(range(200))}\n")
    main, end = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "flake8_jitcache", "fix"],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=end, stderr=end,
    )  # fmt: skip
    os.close(end)
    seen = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    assert process.wait() == 1
    os.close(main)
    assert b"\x1b[32m+@jax.jit\x1b[0m" in seen
    assert b"\x1b[31m-    return jax.jit(lambda v: v * 2)(x)\x1b[0m" in seen
    assert b" of 402 files" in seen
    assert seen.rstrip().endswith(b"1 can be fixed")


def test_no_color_is_respected() -> None:
    from flake8_jitcache.fix.run import _colours

    class Terminal:
        def isatty(self) -> bool:
            return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.delenv("NO_COLOR", raising=False)
        assert _colours(Terminal())
        patch.setenv("NO_COLOR", "1")
        assert not _colours(Terminal())
