"""Three programs of the kind that people write: the report leads to the line, and the mended program is quiet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# A flax training loop whose last batch of an epoch is shorter, and whose evaluation jits anew in each epoch.
FLAX = """
import jax
import jax.numpy as jnp
import optax
from flax import nnx

model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


def evaluate(model, x):
    return nnx.jit(lambda m, v: m(v).mean())(model, x)


for epoch in range(3):
    for _ in range(2):
        train_step(model, optimizer, jnp.ones((8, 4)))
    evaluate(model, jnp.ones((8, 4)))
"""
FLAX_MENDED = FLAX.replace(
    "def evaluate(model, x):\n    return nnx.jit(lambda m, v: m(v).mean())(model, x)",
    "@nnx.jit\ndef evaluate(model, x):\n    return model(x).mean()",
)

# An equinox module with a counter that is a static field: another tree in each step.
EQUINOX = """
import equinox as eqx
import jax
import jax.numpy as jnp


class State(eqx.Module):
    w: jax.Array
    step: int = eqx.field(static=True)


@eqx.filter_jit
def update(state, x):
    return State(state.w - 0.1 * x * state.w, state.step)


state = State(jnp.ones(3), 0)
for step in range(5):
    state = update(State(state.w, step), jnp.ones(3))
"""
EQUINOX_MENDED = (
    EQUINOX.replace("    step: int = eqx.field(static=True)", "    step: jax.Array")
    .replace("State(jnp.ones(3), 0)", "State(jnp.ones(3), jnp.array(0))")
    .replace("State(state.w, step)", "State(state.w, jnp.array(step))")
)

# An optax transformation that is built again in each step, and passed as a static argument.
OPTAX = """
import functools

import jax
import jax.numpy as jnp
import optax


@functools.partial(jax.jit, static_argnums=0)
def update(tx, grads, state):
    return tx.update(grads, state)


state = optax.adam(1e-3).init(jnp.ones(3))
for _ in range(4):
    _, state = update(optax.adam(1e-3), jnp.ones(3), state)
"""
OPTAX_MENDED = OPTAX.replace("state = optax.adam(1e-3).init", "tx = optax.adam(1e-3)\nstate = tx.init").replace(
    "update(optax.adam(1e-3),", "update(tx,"
)


def watched(tmp_path: Path, source: str) -> tuple[str, dict[str, dict[str, int]], str]:
    """Standard error, the counts of each function, and the page."""
    (tmp_path / "program.py").write_text(source)
    command = [sys.executable, "-m", "pytest_jitcache", "run", "--json", "out.json", "--html", "out.html", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = {
        one["name"]: {"traces": one["traces"], "wasted": one["wasted_traces"], "line": one["line"]}
        for one in json.loads((tmp_path / "out.json").read_text())["functions"]
    }
    return done.stderr, counts, (tmp_path / "out.html").read_text()


def test_flax(tmp_path):
    pytest.importorskip("flax", minversion="0.11")
    pytest.importorskip("optax")
    err, counts, page = watched(tmp_path, FLAX)
    assert counts["<lambda>"]["wasted"] == 2
    assert counts["train_step"]["wasted"] == 0
    line = FLAX.split("\n").index("    return nnx.jit(lambda m, v: m(v).mean())(model, x)") + 1
    assert f"jitcache: program.py:{line}: <lambda> traced again: new function object" in err
    assert f"program.py:{line}" in page
    assert "traced again" not in watched(tmp_path, FLAX_MENDED)[0]


def test_equinox(tmp_path):
    pytest.importorskip("equinox")
    err, counts, page = watched(tmp_path, EQUINOX)
    assert counts["update"]["traces"] == 5
    line = EQUINOX.split("\n").index("    state = update(State(state.w, step), jnp.ones(3))") + 1
    assert f"jitcache: program.py:{line}: update traced again: pytree structure (state)" in err
    assert f"program.py:{line}" in page
    assert "traced again" not in watched(tmp_path, EQUINOX_MENDED)[0]


def test_optax(tmp_path):
    pytest.importorskip("optax")
    err, counts, page = watched(tmp_path, OPTAX)
    assert counts["update"]["wasted"] == 3
    line = OPTAX.split("\n").index("    _, state = update(optax.adam(1e-3), jnp.ones(3), state)") + 1
    assert f"jitcache: program.py:{line}: update traced again: static argument made anew (tx)" in err
    assert f"program.py:{line}" in page
    assert "traced again" not in watched(tmp_path, OPTAX_MENDED)[0]
