"""Every case of tests/cases/lint with a JIT101 to JIT107 finding is fixed with its meaning kept, or refused with a reason."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import jax
import pytest
from drivers import CALLS, NO_RETRACE, SETUP, install_imported_modules
from meaning import assert_same_meaning
from run_lint_cases import Case, read_cases

from flake8_jitcache.codes import CODES, FIXABLE
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.rounds import Outcome, repair
from flake8_jitcache.fix.source_file import SourceFile
from flake8_jitcache.options import Options

CASES = {
    case.path.stem: case
    for case in read_cases(Path(__file__).parent.parent / "cases" / "lint")
    if any(code in FIXABLE for _, code in case.expected) and (sys.version_info >= (3, 12) or not case.needs_python_312)
}

REFUSED = {
    "bound_method_instances": {24: "the object `camera` is made on each call"},
    "hot_though_one_sign_says_once": {27: "it calls `self.one`"},
    "method_of_an_attribute": {18: "the object `self.env` is not a plain name"},
    "decorator_jits_in_wrapper": {10: "it is made of the parameter `function`"},
    "object_jits_in_its_constructor": {
        18: "a cache on the method `__init__` would keep each object alive",
        24: "a cache on the method `__init__` would keep each object alive",
    },
    "factory_method": {14: "a cache on the method `_channel` would keep each object alive"},
    "import_inside_function": {
        6: "`jnp` is imported inside `lazy_backend`; at module level it would be needed at import"
    },
    "import_try_except": {13: "`jnp` may be different things at module level (lines 4 and 7)"},
    "tables_and_wrappers": {
        10: "which function is jitted is not certain",
        17: "it is made of the parameter `kind`",
        23: "it is made of the parameter `fn`",
        38: "the object `self.field` is not a plain name",
        42: "`field` is another object on each call",
    },
    "transform_other_call": {8: "`build_potential(...)` is evaluated on each call, and would be at import"},
    "transform_shard_map": {15: "`Mesh(...)` is evaluated on each call, and would be at import"},
}
"""Case -> line -> reason: what not even --unsafe fixes."""


def options(case: Case) -> Options:
    words = dict(word.removeprefix("--").split("=", 1) for word in shlex.split(case.options) if "=" in word)
    return Options(jit_names=tuple(filter(None, words.get("jitcache-jit-names", "").split(","))))


def source(case: Case) -> SourceFile:
    return SourceFile.decode(case.path.read_bytes())


@cache
def outcome(name: str, *, unsafe: bool) -> Outcome:
    case = CASES[name]
    return repair(source(case).text, options(case), FIXABLE, unsafe=unsafe, shown=lambda text, finding: True)


def runnable(text: str, name: str) -> str:
    """The case as a module that can be imported here, with what its driver needs."""
    return f"{text}\n\n{SETUP.get(name, '')}\n"


RUN = [
    (name, unsafe)
    for name in CASES
    for unsafe in (False, True)
    if outcome(name, unsafe=unsafe).text != (outcome(name, unsafe=False).text if unsafe else source(CASES[name]).text)
]
"""The cases that are changed, with --unsafe where that changes more."""


@pytest.mark.parametrize(("name", "unsafe"), RUN, ids=[f"{name}{'-unsafe' * unsafe}" for name, unsafe in RUN])
def test_fixed_case_means_the_same(name: str, unsafe: bool, tmp_path: Path) -> None:
    done = outcome(name, unsafe=unsafe)
    for library in ("equinox", "flax"):
        if library in done.text:
            pytest.importorskip(library)
    if "@jax.jit(" in done.text and jax.__version_info__ < (0, 7):
        pytest.skip("this JAX has no jit that is called for a decorator")
    install_imported_modules()
    before, after = runnable(source(CASES[name]).text, name), runnable(done.text, name)
    assert_same_meaning(before, after, CALLS[name], tmp_path, retraces=name not in NO_RETRACE)


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("name", CASES)
def test_fixed_finding_is_gone_and_no_new_one_appears(name: str, unsafe: bool) -> None:
    case, done = CASES[name], outcome(name, unsafe=unsafe)
    expected = Counter(code for _, code in case.expected.elements())
    found = Counter(f.code for f in Document(done.text, options(case)).findings if CODES[f.code].default)
    assert found == expected - done.fixed
    assert done.fixed.total() + len(done.left) == sum(expected[code] for code in FIXABLE)


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("name", CASES)
def test_second_run_changes_nothing(name: str, unsafe: bool) -> None:
    done = outcome(name, unsafe=unsafe)
    again = repair(done.text, options(CASES[name]), FIXABLE, unsafe=unsafe, shown=lambda text, finding: True)
    assert again.text == done.text
    assert not again.fixed
    assert [(left.code, left.reason) for left in again.left] == [(left.code, left.reason) for left in done.left]


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_has_the_true_reason(name: str) -> None:
    left = {one.line: one.reason for one in outcome(name, unsafe=True).left}
    assert left == REFUSED.get(name, {})


def test_at_least_seven_of_ten_are_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    counts: dict[str, Counter[str]] = {code: Counter() for code in FIXABLE}
    for name in CASES:
        safe, unsafe = outcome(name, unsafe=False), outcome(name, unsafe=True)
        for code in FIXABLE:
            counts[code]["safe"] += safe.fixed[code]
            counts[code]["unsafe"] += unsafe.fixed[code] - safe.fixed[code]
            counts[code]["refused"] += sum(one.code == code for one in unsafe.left)
    total = sum(counts.values(), Counter())
    with capsys.disabled():
        print(f"\n{'code':8}{'safe':>6}{'unsafe':>8}{'refused':>9}")
        for code, count in [*counts.items(), ("all", total)]:
            print(f"{code:8}{count['safe']:6}{count['unsafe']:8}{count['refused']:9}")
    assert total["safe"] >= 0.7 * total.total()
