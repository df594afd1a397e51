"""Breaks each row of the table of private names in turn, and says what the guard makes of right and of wrong programs.

Prints one line of JSON for a row: its names, and the verdict on each program. Each row has a process of its own, forked
before JAX has started a backend, in which JAX is real and the row alone is spelled as in no version of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pytest_jitcache import JitcacheWarning, RetraceError, traced_once
from pytest_jitcache.jax import names

try:
    import equinox as eqx
    from flax import nnx
except ImportError:
    eqx = nnx = None

X = np.ones(3, np.float32)


def double(x):
    return 2 * x


def body(carry, x):
    return carry + x, x


class Mode:
    pass


def _thrice(make):
    with traced_once():
        for _ in range(3):
            make()(X)


def lambdas():
    _thrice(lambda: jax.jit(lambda x: x * 2))


def weak_type():
    step = traced_once(jax.jit(lambda x: x + 1))
    step(np.float32(1))
    step(1.0)
    step._close()


def second_shape():
    step = jax.jit(double)
    with traced_once(step, per="total"):
        step(X), step(X[:2])


def under_grad():
    with traced_once():
        for _ in range(2):
            jax.grad(lambda v: jax.jit(lambda x: x * 3)(v).sum())(X)


def loops():
    with traced_once():
        for _ in range(2):
            jax.lax.scan(lambda c, x: (c + x, x), np.float32(0), X)


def checkpoints():
    _thrice(lambda: jax.checkpoint(lambda x: x * 2))


def disabled():
    step = jax.jit(double)
    with traced_once(step), jax.disable_jit():
        step(X)


def cleared():
    step = jax.jit(double)
    with traced_once(step):
        step(X)
        jax.clear_caches()
        step(X)


def setting():
    step = jax.jit(double)
    with traced_once(step):
        step(X)
        with jax.default_matmul_precision("highest"):
            step(X)


def pmaps():
    with traced_once():
        for _ in range(2):
            jax.pmap(lambda x: x * 2)(X[None])


def compiles():
    step = jax.jit(lambda x: x - 1)
    with traced_once(step, max_compiles=0):
        step(X)


def static_objects():
    step = jax.jit(lambda x, mode: x, static_argnums=1)
    with traced_once(step):
        step(X, Mode()), step(X, Mode())


def plain_function():
    def drive():
        jax.jit(lambda x: x / 2)(X)

    with traced_once(drive):
        drive(), drive()


def filter_jits():
    _thrice(lambda: eqx.filter_jit(lambda x: x * 2))


def filter_jit_static():
    step = eqx.filter_jit(lambda x, n: x * n)
    with traced_once(step, per="total"):
        step(X, 2.0), step(X, 3.0)


def nnx_jits():
    _thrice(lambda: nnx.jit(double))


def two_static_values():
    step = jax.jit(lambda x, n, *, k: x * n, static_argnums=1, static_argnames="k")
    with traced_once(step):
        step(X, 2, k="a"), step(X, 3, k="a"), step(X, 3, k="b"), step(X, 3, k="b")


def two_shapes():
    step = traced_once(jax.jit(double))
    step(X), step(X[:2]), step(X)
    step._close()


def kept_loop():
    with traced_once():
        for _ in range(2):
            jax.lax.scan(body, np.float32(0), X)


def triple(x):
    return 3 * x


def same_function_jitted_again():
    with traced_once(triple):
        for _ in range(3):
            jax.jit(triple)(X)


def inlined_before():
    jax.jit(lambda x: jax.jit(double)(x))(X)
    step = jax.jit(double)
    with traced_once(step, max_compiles=1) as traces:
        step(X), step(X)
    assert len(traces) == 1


def nested():
    inner = jax.jit(double)
    outer = jax.jit(lambda x: inner(x) + jnp.sin(x))
    with traced_once():
        outer(X), outer(X)


def raises():
    def fails(x):
        raise ValueError

    step = jax.jit(fails)
    with traced_once():
        for _ in range(2):
            with contextlib.suppress(ValueError):
                step(X)
        jax.jit(lambda x: x)(X)


def filter_jit_kept():
    step = eqx.filter_jit(double)
    with traced_once(step):
        step(X), step(X), step(X[:2])


def mapped_static_values():
    step = partial(jax.pmap, static_broadcasted_argnums=1)(lambda x, n: x * n)
    with traced_once(step):
        step(X[None], 2), step(X[None], 3), step(X[None], 3)


WRONG = [
    lambdas, weak_type, second_shape, under_grad, loops, checkpoints, disabled, cleared, setting, pmaps, compiles,
    static_objects, plain_function, *([filter_jits, filter_jit_static, nnx_jits] if eqx else []),
]  # fmt: skip
RIGHT = [
    two_static_values, two_shapes, kept_loop, same_function_jitted_again, inlined_before, nested, raises,
    mapped_static_values, *([filter_jit_kept] if eqx else []),
]  # fmt: skip


def verdict(program):
    """The first line of the failure, "warns: ..." or "passes"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program()
        except RetraceError as error:
            return str(error).splitlines()[0]
        except Exception as error:  # noqa: BLE001, it is told what it was
            return f"{type(error).__name__}: {error}"
    found = [str(warning.message) for warning in caught if isinstance(warning.message, JitcacheWarning)]
    return f"warns: {found[0]}" if found else "passes"


def main(rows):
    for number in rows:
        row = names.TABLE[max(number, 0)]
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            before = row.texts
            row.texts = ("spelled_otherwise",) if number >= 0 else before
            found = {program.__name__: verdict(program) for program in (*WRONG, *RIGHT)}
            kinds = {"wrong": [one.__name__ for one in WRONG], "right": [one.__name__ for one in RIGHT]}
            print(json.dumps({"row": number, "names": before, "found": found, **kinds}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or range(-1, len(names.TABLE)))
