"""The fence round JAX: private names stand in one table, and where one of them is gone no guard passes unseen."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_jitcache
from pytest_jitcache.jax import names

PACKAGE = Path(pytest_jitcache.__file__).parent
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name != "jax")
# Names in the table that are also words of everybody: parameters of `jax.jit`, transforms, parts of Python.
COMMON = {
    "fun", "args", "kwargs", "f", "func", "fn", "call", "cache", "trace", "lower", "eval_shape", "scan", "while", "cond",
    "transpose", "transforms", "self", "wrapped", "__wrapped__", "static_argnums", "static_argnames", "control_flow",
    "AUTO", "util.py", "traced_for", "_signature",
}  # fmt: skip
PRIVATE = {text for row in names.TABLE for text in row.texts} - COMMON


def _spoken(tree):
    """The names and short texts of a module, without its documentation."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_private_names_are_named_in_one_place(path):
    found = [
        (line, text)
        for line, text in _spoken(ast.parse(path.read_text(encoding="utf-8")))
        if text in PRIVATE or "jax._src" in text or "jaxlib." in text
    ]
    assert not found


def test_the_table_is_whole():
    rows = [(row.where, row.texts) for row in names.TABLE]
    assert len(rows) == len(set(rows))
    assert all(row.texts and row.where and row.since and row.without for row in names.TABLE)
    rooms = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "names.py")
    constants = {name for name, value in vars(names).items() if isinstance(value, names.Name)}
    assert len(constants) == len(names.TABLE)
    assert {name for name in constants if f"names.{name}" not in rooms} == set()


RAN = ("traced", "compiled", "cannot judge", "was not judged")
# What is right as JAX is; other rows may say "cannot judge".
EMPTY = "warns: nothing was traced in the block"


@pytest.fixture(scope="module")
def verdicts():
    """What the guard makes of right and of wrong programs where one row is missing, by its number; -1: where none is."""
    if not hasattr(os, "fork"):
        pytest.skip("a process for each row is forked")
    script = Path(__file__).with_name("broken_names.py")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line["row"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.matrix
@pytest.mark.parametrize(
    "row", range(-1, len(names.TABLE)), ids=lambda row: str(names.TABLE[row]) if row >= 0 else "none"
)
def test_no_silent_pass_where_a_name_is_gone(verdicts, row):
    found = verdicts[row]["found"]
    wrong, right = (verdicts[row][kind] for kind in ("wrong", "right"))
    assert len(wrong) > 10 < len(found)
    unseen = {name: found[name] for name in wrong if not any(word in found[name] for word in RAN)}
    assert not unseen
    accused = {
        name: found[name]
        for name in right
        if found[name] != "passes" and not found[name].startswith(("cannot", "warns"))
    }
    if row >= 0 and "of a pmap" in names.TABLE[row].without:
        accused.pop("mapped_static_values", None)  # without them another value looks as a function made anew
    assert not accused
    if row < 0:
        assert not [text for text in found.values() if "judge" in text and "jit disabled" not in text]
        assert {found[name] for name in right} == {"passes"}


def run(source, **environment):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_probe_starts_no_backend_and_is_quick():
    out = run(
        "import time, jax\n"
        "from jax._src import xla_bridge\n"
        "from pytest_jitcache.jax import listening\n"
        "from pytest_jitcache.recorder import recorder\n"
        "real, spent = listening._probe, []\n"
        "def timed():\n"
        "    began = time.process_time(); real(); spent.append(time.process_time() - began)\n"
        "listening._probe = timed\n"
        "listening.listen(recorder)\n"
        "assert not xla_bridge.backends_are_initialized()\n"
        "assert listening.state.probed and not listening.missing(True)\n"
        "listening.listen(recorder)\n"
        "print(*spent)"
    )
    first, second = map(float, out.split())
    assert first < 0.02  # 0.001 to 0.004 where nothing else runs
    assert second < 0.001


def test_a_trace_that_only_the_public_event_reports_spoils_the_verdict():
    out = run(
        "import jax, jax.numpy as jnp, pytest_jitcache as p\n"
        "from pytest_jitcache.jax import listening\n"
        "step = jax.jit(lambda x: x)\n"
        "try:\n"
        "    with p.traced_once(step):\n"
        "        real, listening._trace_starts = listening._trace_starts, lambda *_: None  # a way that is not heard\n"
        "        step(1.0)\n"
        "        listening._trace_starts = real\n"
        "        step(jnp.ones(3))\n"
        "except p.RetraceError as error:\n"
        "    print(str(error).splitlines()[0])\n"
    )
    if not pytest_jitcache.jax.names.LISTENER.find():
        pytest.skip("JAX 0.4 tells of traces by that event alone")
    assert "<lambda> was not judged: JAX reports a trace of <lambda> that was not seen" in out


@pytest.mark.parametrize("way", ["lower", "trace", "eval_shape"])
def test_an_event_without_a_run_of_the_body_is_no_reason(way):
    run(
        "import jax, jax.numpy as jnp, pytest_jitcache as p\n"
        "def body(x): return x\n"
        "jax.jit(body)(jnp.ones(3))\n"
        f"look = (lambda f: jax.eval_shape(f, jnp.ones(3))) if {way!r} == 'eval_shape' else "
        f"(lambda f: getattr(f, {way!r})(jnp.ones(3)))\n"
        "step = jax.jit(body)\n"
        "with p.traced_once():\n"
        "    look(jax.jit(body)); jax.jit(lambda x: x)(jnp.ones(3))\n"
        "with p.traced_once(step) as traces:\n"
        "    look(step); look(jax.jit(body)); step(jnp.ones(3))\n"
        "assert len(traces) == 1\n"
    )


def test_strict_fails_where_it_cannot_judge(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from pytest_jitcache.jax import names\nnames.STARTS.texts = names.ENDS.texts = ('spelled_otherwise',)\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "def test_retraces():\n"
        "    for _ in range(2): jax.jit(lambda x: x + 1)(jnp.ones(3))\n"
        "def test_without_jax(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--jitcache-strict"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "RetraceError: cannot judge the test: JAX" in done.stdout
    assert "jitcache: not known: JAX" in done.stdout


def test_the_table_can_be_printed():
    done = subprocess.run(
        [sys.executable, "-m", "pytest_jitcache", "names"], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == len(names.TABLE)
    assert "trace_to_jaxpr" in done.stdout
