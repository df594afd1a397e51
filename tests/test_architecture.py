"""ARCHITECTURE.md is true: its layers are those of the imports, its list of modules is that of the folders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = ("flake8_jitcache", "pytest_jitcache")


def layers(package: str) -> list[set[str]]:
    """The rows of the page's table for a package, the highest first."""
    table = PAGE.partition("## Who may import whom")[2].partition("Private to one place")[0]
    column = 1 + PACKAGES.index(package)
    rows = [line.split("|") for line in table.splitlines() if line.startswith("|")][2:]
    return [set(re.findall(r"`(\w+)`", row[column])) for row in rows]


def rooms(package: str) -> set[str]:
    """The folders and modules of a package, without what only marks it as one."""
    names = {path.stem for path in (ROOT / package).iterdir() if path.suffix == ".py" or path.is_dir()}
    return names - {"__init__", "__pycache__"}


def imports(package: str) -> Iterator[tuple[str, str]]:
    """Which room imports which, outside of blocks for type checkers."""
    for path in (ROOT / package).rglob("*.py"):
        room = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in typing_only or not node.module:
                continue
            parts = node.module.split(".")
            if parts[0] != package:
                continue
            for name in [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]:
                if name in rooms(package) and name != room:
                    yield room, name


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_imports_a_higher_one(package: str) -> None:
    height = {room: -number for number, row in enumerate(layers(package)) for room in row}
    wrong = {(room, other) for room, other in imports(package) if room != "__init__" and height[room] < height[other]}
    assert wrong == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_room_has_a_layer(package: str) -> None:
    data = {"pages"}
    assert set().union(*layers(package)) == rooms(package) - data


@pytest.mark.parametrize("package", PACKAGES)
def test_list_of_modules_is_that_of_the_folders(package: str) -> None:
    section = PAGE.partition(f"`{package}/`\n")[2].partition("\n`")[0].partition("\n## ")[0]
    assert set(re.findall(r"^- `(\w+)`:", section, re.MULTILINE)) == rooms(package) - {"__main__"}


def test_linter_asks_nothing_of_the_plugin() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "flake8_jitcache").rglob("*.py"))
    assert not any(re.search(r"^\s*(from|import) pytest_jitcache", text, re.MULTILINE) for text in texts)


def test_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 200


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tests|pytest_jitcache|flake8_jitcache|\.ci)/[\w./]+)`", text):
        assert (ROOT / name).exists(), name
