"""The page of each code: in one order, in the package, and with examples that do what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flake8_jitcache.codes import CODES, FIXABLE
from flake8_jitcache.explain import page
from flake8_jitcache.options import Options, flag
from flake8_jitcache.terminal import fitted

SECTIONS = [
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Can it be fixed?",
    "Known limits",
    "Options",
    "References",
]

OFF = ",".join(code.code for code in CODES.values() if not code.default)


def example(code: str, section: str) -> str:
    """The Python in a section of a page."""
    [found] = re.findall(rf"^## {section}\n\n```python\n(.*?)^```$", page(code), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("code", CODES)
def test_page_has_the_sections_in_order(code: str) -> None:
    text = page(code)
    assert text.startswith(f"# {code}: {CODES[code].name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("code", CODES)
def test_page_says_whether_the_code_is_on(code: str) -> None:
    said = page(code).splitlines()[2]
    assert said == ("On by default." if CODES[code].default else f"Off by default; `extend-select = {code}` shows it.")


@pytest.mark.parametrize("code", CODES)
def test_page_says_whether_the_code_can_be_fixed(code: str) -> None:
    said = page(code).split("## Can it be fixed?\n\n")[1].split("\n## ")[0]
    assert said.startswith("No: ") is (code not in FIXABLE)
    assert ("--unsafe" in said) is (code in FIXABLE)


@pytest.mark.parametrize("code", CODES)
def test_page_names_options_that_exist(code: str) -> None:
    options = page(code).split("## Options\n")[1].split("## References")[0]
    named = re.findall(r"`(jitcache-[a-z-]+)`", options)
    assert named
    assert set(named) <= {flag(name).removeprefix("--") for name in Options.__dataclass_fields__}


# -------------------------------------------------------------------- explain


def explain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flake8_jitcache", "explain", *arguments]
    env = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_explain_prints_pages_in_the_order_asked_for() -> None:
    done = explain("JIT204", "jit101", "captured-attribute")
    assert done.returncode == 0
    assert done.stdout == "\n".join(fitted(page(code), 80) for code in ("JIT204", "JIT101", "JIT203"))


@pytest.mark.parametrize("code", CODES)
def test_page_on_a_terminal_keeps_its_words_and_its_width(code: str) -> None:
    shown = fitted(page(code), 80)
    too_long = [line for line in shown.splitlines() if len(line) > 80 and "https://" not in line]
    assert too_long == []
    fences = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)
    assert fences.findall(shown) == fences.findall(page(code))
    words = re.compile(r"[A-Za-z]{3,}")
    assert set(words.findall(page(code))) == set(words.findall(shown))


TABLE = """\
| made | traced |
| --- | --- |
| `a` | yes |
"""


def test_table_that_fits_stays_a_table() -> None:
    assert fitted(TABLE, 20) == "made  traced\n----  ------\n`a`   yes\n"


def test_table_that_does_not_fit_becomes_a_list() -> None:
    assert fitted(TABLE, 11) == "- `a`\n  traced:\n    yes\n"


def test_explain_lists_all_codes() -> None:
    done = explain()
    assert done.returncode == 0
    first = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("JIT")]
    assert first == [[code.code, code.name] for code in CODES.values()]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_explain_names_what_is_allowed() -> None:
    done = explain("JIT201", "JIT999")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no code 'JIT999'; allowed are JIT101, ")
    assert len(done.stderr.splitlines()) == 1


# -------------------------------------------------------------------- examples through flake8


@pytest.fixture(scope="module")
def flake8(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The codes that flake8 finds in each example's file: one process for the codes that are on, one for those that
    are off."""
    folder = tmp_path_factory.mktemp("pages")
    groups: dict[str, list[str]] = {}
    for code, known in CODES.items():
        for section in ("Example", "Use instead"):
            name = f"{code}_{section.replace(' ', '_')}.py"
            (folder / name).write_text(example(code, section))
            groups.setdefault("" if known.default else OFF, []).append(name)
    found: dict[str, list[str]] = {name: [] for names in groups.values() for name in names}
    for asked, names in groups.items():
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=JIT", "--format=%(path)s %(code)s"]
        done = subprocess.run(
            [*command, f"--extend-select={asked}", *names], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        for line in done.stdout.splitlines():
            name, code = line.split()
            found[name].append(code)
    return found


@pytest.mark.parametrize("code", CODES)
def test_flake8_finds_the_code_in_the_example(code: str, flake8: dict[str, list[str]]) -> None:
    assert flake8[f"{code}_Example.py"] == [code]


@pytest.mark.parametrize("code", CODES)
def test_flake8_finds_nothing_in_what_to_use_instead(code: str, flake8: dict[str, list[str]]) -> None:
    assert flake8[f"{code}_Use_instead.py"] == []


# -------------------------------------------------------------------- examples through JAX

# An expression to evaluate three times: the example compiles each time, what to use instead the first time only.
AGAIN = {
    "JIT101": "normalise(x)",
    "JIT102": "cube(x)",
    "JIT103": "update(x, x, 0.1)",
    "JIT104": "model(x)",
    "JIT105": "descend(x, x)",
    "JIT106": "double(x)",
    "JIT191": "smooth(x, 3)",
    "JIT304": "shift(x)",
}
# An expression to evaluate once: the example compiles on each of its iterations, what to use instead at most three times.
PER_ITERATION = {"JIT303": "run(x, 6)", "JIT401": "main()", "JIT501": "running_means(x)"}
# Steps: the last gives another value than without a jit in the example, and the same in what to use instead.
STALE = {
    "JIT201": ["soften(x)", "set_temperature(4.0)", "soften(x)"],
    "JIT202": ["train(x, x, 3)"],
    "JIT203": ["oscillator.step(x)", "oscillator.retune(0.1)", "oscillator.step(x)"],
    "JIT204": ["penalised(x)", "add_penalty(5.0)", "penalised(x)"],
    "JIT205": ["decay(x)", "decay(x)"],
    "JIT291": ["decoder.load(2.0)", "decoder.decode(x)", "decoder.load(3.0)", "decoder.decode(x)"],
}
# A step at which the example raises, and what to use instead does not; the empty one: the module itself.
RAISES = {"JIT301": "columns(jnp.ones((2, 2)))", "JIT302": ""}
# What a run can't show: only that it works, and compiles once.
QUIET = {"JIT107": "area(x)", "JIT192": "make_scaler(2.0)(x)"}

SETUP = """
import jax.numpy as jnp
x = jnp.arange(1.0, 7.0)
if "Model" in globals():
    model = Model(2.0)
if "Oscillator" in globals():
    oscillator = Oscillator(0.5)
if "Decoder" in globals():
    decoder = Decoder()
"""


def load(code: str, section: str) -> dict[str, Any]:
    """The namespace of an example, with what the steps need."""
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(example(code, section), f"{code} {section}", "exec"), namespace)  # noqa: S102
    exec(SETUP, namespace)  # noqa: S102
    return namespace


@pytest.fixture(scope="module")
def compiles() -> Callable[[Callable[[], object]], int]:
    """A function that counts how often XLA compiles while something runs."""
    jax = pytest.importorskip("jax")
    seen: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, duration, **_: seen.append(event))

    def count(run: Callable[[], object]) -> int:
        seen.clear()
        jax.block_until_ready(run())
        return seen.count("/jax/core/compile/backend_compile_duration")

    return count


@pytest.mark.parametrize("code", AGAIN)
def test_example_compiles_again_each_time(code: str, compiles: Callable[[Callable[[], object]], int]) -> None:
    bad, good = load(code, "Example"), load(code, "Use instead")
    assert [compiles(lambda: eval(AGAIN[code], bad)) > 0 for _ in range(3)] == [True, True, True]
    assert [compiles(lambda: eval(AGAIN[code], good)) > 0 for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("code", PER_ITERATION)
def test_example_compiles_on_each_iteration(code: str, compiles: Callable[[Callable[[], object]], int]) -> None:
    bad, good = load(code, "Example"), load(code, "Use instead")
    eval(PER_ITERATION[code], good)  # the operations around it, which both have
    warm = compiles(lambda: eval(PER_ITERATION[code], bad))
    assert warm >= 4
    assert compiles(lambda: eval(PER_ITERATION[code], load(code, "Use instead"))) <= 3


@pytest.mark.parametrize("code", STALE)
def test_example_gives_the_stale_value(code: str) -> None:
    jax = pytest.importorskip("jax")

    def last_value(section: str) -> Any:
        namespace = load(code, section)
        return [eval(step, namespace) for step in STALE[code]][-1]

    for section, is_right in (("Example", False), ("Use instead", True)):
        with jax.disable_jit():
            right = last_value(section)
        assert bool((abs(last_value(section) - right) < 1e-6).all()) is is_right


@pytest.mark.parametrize("code", RAISES)
def test_example_raises(code: str) -> None:
    pytest.importorskip("jax")
    with pytest.raises(ValueError, match=r"Non-hashable static arguments|invalid argnames"):
        eval(RAISES[code] or "None", load(code, "Example"))
    eval(RAISES[code] or "None", load(code, "Use instead"))


@pytest.mark.parametrize("code", QUIET)
def test_example_runs(code: str, compiles: Callable[[Callable[[], object]], int]) -> None:
    namespace = load(code, "Example")
    kept = eval(QUIET[code].removesuffix("(x)"), namespace)
    assert [compiles(lambda: kept(namespace["x"])) > 0 for _ in range(3)] == [True, False, False]


def test_each_example_is_run() -> None:
    assert {*AGAIN, *PER_ITERATION, *STALE, *RAISES, *QUIET} == set(CODES)


def test_pages_are_those_of_the_codes() -> None:
    import flake8_jitcache

    folder = Path(flake8_jitcache.__file__).parent / "pages"
    assert {path.name for path in folder.iterdir()} == {f"{code}.md" for code in CODES}
