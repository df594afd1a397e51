"""Whether two versions of a module mean the same: both are imported and run with real JAX on the same inputs."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import itertools
import sys
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pytest_jitcache import JitcacheWarning, RetraceError, traced_once

_NUMBER = itertools.count()


def load(text: str, folder: Path) -> types.ModuleType:
    """Import a text as a module of its own, from a file, so that tracebacks and places are real."""
    name = f"fixed_module_{next(_NUMBER)}"
    path = folder / f"{name}.py"
    path.write_bytes(text.encode())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(module: types.ModuleType, call: str) -> Any:
    """The value of an expression in a module; JAX and NumPy are there as `jax`, `jnp` and `np`."""
    names = {"jax": jax, "jnp": jnp, "np": np, **vars(module)}
    value = eval(call, names)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def assert_same(first: Any, second: Any) -> None:
    """The same tree, the same shapes and dtypes, the same numbers up to rounding."""
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        if isinstance(one, str):
            assert one == other
            continue
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def assert_same_meaning(before: str, after: str, calls: Sequence[str], folder: Path, *, retraces: bool = True) -> None:
    """Each call gives the same in both; called twice, the first version is traced again and the second is not."""
    old, new = load(before, folder), load(after, folder)
    for call in calls:
        assert_same(run(old, call), run(new, call))
    if "pmap" in after and jax.__version_info__ < (0, 7):
        return  # this JAX does not report traces of pmap
    for call in calls:
        if retraces:
            assert is_traced_again(before, call, folder)
        with warnings.catch_warnings():
            if not retraces:  # a library's function may be warm from elsewhere
                warnings.simplefilter("ignore", JitcacheWarning)
            with traced_once():
                run_twice(after, call, folder)


def is_traced_again(text: str, call: str, folder: Path) -> bool:
    """Whether the guard fails a text that is run twice. equinox keeps each function that it has jitted, so that the
    guard takes two of them for two functions; then whether the second run traces anything."""
    try:
        with traced_once() as traces:
            module = load(text, folder)
            run(module, call)
            first = len(traces)
            run(module, call)
    except RetraceError:
        return True
    return "eqx" in text and len(traces) > first


def run_twice(text: str, call: str, folder: Path) -> None:
    """Import a text anew, so that all of it is cold, and evaluate an expression in it two times."""
    module = load(text, folder)
    run(module, call)
    run(module, call)
