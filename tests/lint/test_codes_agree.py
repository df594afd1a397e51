"""The code table, the pages, README, CHANGELOG and the cases speak of the same codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from run_lint_cases import marked, read_cases, read_text

from flake8_jitcache.codes import CODES, rank
from flake8_jitcache.facts.known import JITS
from flake8_jitcache.prefilter import WORDS

ROOT = Path(__file__).resolve().parent.parent.parent


def mentioned(text: str) -> set[str]:
    """The codes in a text; `JIT101 to JIT107` stands for all of the table between the two."""
    found = set(re.findall(r"JIT\d{3}", text))
    for first, last in re.findall(r"(JIT\d{3}) to (JIT\d{3})", text):
        found |= {code for code in CODES if first <= code <= last}
    return found


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_document_has_all_codes(name: str) -> None:
    assert mentioned((ROOT / name).read_text()) == set(CODES)


def test_pages_have_all_codes() -> None:
    pages = ROOT / "flake8_jitcache" / "pages"
    assert {path.stem for path in pages.iterdir()} == set(CODES)


def test_pages_refer_to_codes_that_exist() -> None:
    for path in (ROOT / "flake8_jitcache" / "pages").iterdir():
        assert mentioned(path.read_text()) <= set(CODES), path.name


def test_cases_expect_each_code() -> None:
    cases = read_cases(ROOT / "tests" / "cases" / "lint")
    assert {code for case in cases for _, code in case.expected} == set(CODES)


def test_inline_sources_expect_each_code() -> None:
    files = Path(__file__).parent.glob("test_*.py")
    expected = {code for path in files for _, code in marked(read_text(path), "expect", "opt-in")}
    assert expected >= {code for code in CODES if code >= "JIT2"}
    assert expected <= set(CODES)


def test_linter_makes_findings_of_known_codes_only() -> None:
    source = "".join(path.read_text() for path in (ROOT / "flake8_jitcache").glob("*.py"))
    assert mentioned(source) == set(CODES)


def test_prefilter_knows_the_last_part_of_each_jit() -> None:
    assert {name.rpartition(".")[2] for name in JITS} == set(WORDS)


def test_names_are_words_with_hyphens_and_are_different() -> None:
    names = [code.name for code in CODES.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in names)


def test_wrong_results_rank_before_retraces_and_these_before_static_arguments() -> None:
    on = sorted((code for code in CODES if CODES[code].default), key=rank)
    assert [code[3] for code in on] == sorted((code[3] for code in on), key="213".index)
    assert max(rank(code) for code in on) < min(rank(code) for code in CODES if not CODES[code].default)
