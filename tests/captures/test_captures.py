"""`check_captures=True`: what keeps a stale value fails, with its text; what is right passes; in all forms."""

from __future__ import annotations

import importlib.util
import warnings

import jax
import pytest
from faulty import FAULTY
from right import RIGHT

from pytest_jitcache import JitcacheWarning, StaleValueError, traced_once

STARTS_ARE_ANNOUNCED = jax.__version_info__ >= (0, 5)
ADVANCED = ("counter_that_the_body_advances", "key_that_the_body_splits")


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", FAULTY)
def test_stale_value_is_told_at_the_end_of_a_block(name):
    first, fix, program = FAULTY[name]
    if name in ADVANCED and not STARTS_ARE_ANNOUNCED:
        pytest.skip("JAX 0.4.35 tells of a trace when it is over, and so what its body has changed before")
    step, run = program()
    with pytest.raises(StaleValueError) as caught, traced_once(step, check_captures=True):
        got, wanted = run(step)
        assert got != wanted
    text = str(caught.value)
    assert text.partition("\n")[0] == first
    assert f"fix: {fix}" in flat(text)


@pytest.mark.parametrize("name", FAULTY)
def test_stale_value_is_told_without_naming_the_function(name):
    first, _, program = FAULTY[name]
    if name in ADVANCED and not STARTS_ARE_ANNOUNCED:
        pytest.skip("JAX 0.4.35 tells of a trace when it is over, and so what its body has changed before")
    step, run = program()
    with pytest.raises(StaleValueError) as caught, traced_once(check_captures=True):
        run(step)
    assert str(caught.value).partition("\n")[0] == first


@pytest.mark.parametrize("name", FAULTY)
def test_wrap_tells_at_the_call_that_used_a_stale_value(name, assert_traced_once):
    first, fix, program = FAULTY[name]
    step, run = program()
    if FAULTY[name][0].endswith("each time it is traced") or name in ADVANCED:
        pytest.skip("nothing has changed at the call; told at the end of the test")
    with pytest.raises(StaleValueError) as caught:
        run(traced_once(step, check_captures=True))
    text = str(caught.value)
    assert text.partition("\n")[0] == first
    assert f"fix: {fix}" in flat(text)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("named", [True, False], ids=["named", "anything"])
def test_right_program_stays_quiet_in_a_block(name, named):
    _needs_library(name)
    step, run = RIGHT[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", JitcacheWarning)
        if step is None:
            warnings.simplefilter("ignore", JitcacheWarning)  # its library puts something around a trace: not checked
            named = False
        with traced_once(*([step] if named else []), check_captures=True, max_traces=9):
            run()


def _needs_library(name: str) -> None:
    for library in ("flax", "equinox", "optax"):
        if name.startswith(library) and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
