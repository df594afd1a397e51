"""The guarantees of a round hold whatever a planner comes up with, and fixes that touch are made one after another."""

from __future__ import annotations

import pytest
from test_meaning import fix

from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.fixes import Fix, Planner, Task
from flake8_jitcache.fix.planners import PLANNERS
from flake8_jitcache.fix.refusal import Refused

TEXT = """\
import jax


def first(x):
    return jax.jit(lambda v: v * 2)(x)


def second(x):
    @jax.jit
    def inner(v):
        return v * 3

    return inner(x)
"""


def replacing(old: str, new: str) -> Planner:
    """A planner that does nothing but replace a piece of the text."""

    def plan(task: Task) -> Fix:
        at = task.document.text.index(old)
        return Fix([Edit(at, at + len(old), new)])

    return plan


BROKEN = {
    "no_python": (replacing("(lambda v: v * 2)(x)", "(lambda v: v * 2)(x"), "the fixed text would not parse: "),
    "nothing_done": (replacing("v * 2", "v * 4"), "the finding would still be there"),
    "another_finding": (
        replacing("jax.jit(lambda v: v * 2)(x)", "jax.jit(jax.numpy.sum)(x)"),
        "the fixed text would have a new finding, JIT107",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_fix_that_breaks_a_guarantee_is_refused_and_the_others_are_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner, reason = BROKEN[name]
    monkeypatch.setitem(PLANNERS, "JIT101", planner)
    done = fix(TEXT)
    assert dict(done.fixed) == {"JIT103": 1}
    assert [(left.line, left.code) for left in done.left] == [(5, "JIT101")]
    assert done.left[0].reason.startswith(reason)
    assert "def first(x):\n    return jax.jit(lambda v: v * 2)(x)\n" in done.text


def test_fault_of_a_planner_costs_one_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(task: Task) -> Fix:
        raise KeyError("oops")

    monkeypatch.setitem(PLANNERS, "JIT103", plan)
    done = fix(TEXT)
    assert dict(done.fixed) == {"JIT101": 1}
    assert [left.reason for left in done.left] == ["an internal error, please report it: KeyError: 'oops'"]


def test_refusal_names_the_line_of_the_text_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(task: Task) -> Fix:
        raise Refused("no")

    monkeypatch.setitem(PLANNERS, "JIT103", plan)
    done = fix(TEXT)
    assert done.text.splitlines().index("    @jax.jit") + 1 == 14
    assert [(left.line, left.reason) for left in done.left] == [(9, "no")]


def test_fix_inside_of_another_is_made_in_a_later_round() -> None:
    text = "import jax\n\n\ndef f(x):\n    return jax.jit(lambda v: v + 1)(jax.jit(lambda v: v * 2)(jax.jit(lambda v: v - 3)(x)))\n"
    done = fix(text)
    assert done.left == []
    assert done.fixed["JIT101"] == 3
    assert done.text.count("@jax.jit") == 3
    assert done.text.count("lambda") == 0


def test_only_the_wanted_codes_are_fixed() -> None:
    done = fix(TEXT, codes=("JIT103",))
    assert dict(done.fixed) == {"JIT103": 1}
    assert done.left == []


def test_many_findings_in_one_function_get_names_of_their_own() -> None:
    lines = "".join(f"    x = jax.jit(lambda v: v * {i})(x)\n" for i in range(12))
    done = fix(f"import jax\n\n\ndef f(x):\n{lines}    return x\n")
    names = [line.split("(")[0] for line in done.text.splitlines() if line.startswith("def _")]
    assert done.left == []
    assert len(set(names)) == len(names) == 12
