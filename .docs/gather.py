"""Makes the pages of the documentation site out of those that the repository has, so that each text stands once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the site is of this checkout, whichever is installed

from flake8_jitcache.codes import CODES

README = (ROOT / "README.md").read_text(encoding="utf-8")

# A page of the site: what it is made of. "# Title" begins a page, other headings name sections of README.
PAGES: dict[str, tuple[str, ...]] = {
    "index.md": ("# jax-jitcache", "## Try it"),
    "ways.md": ("# The three ways in", "## Use it"),
    "codes.md": ("# Codes and options of the linter", "## The codes"),
    "limits.md": ("# Limits", "## Limits", "## What was run", "## What it costs"),
    "compare.md": ("# How it compares", "## How it compares"),
}
FILES = {
    "options.md": "pytest_jitcache/suite/README.md",
    "causes.md": "pytest_jitcache/causes/causes.md",
    "example.md": "example/README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
LINKS = {path: page for page, path in FILES.items()} | {"README.md": "index.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages. Raises KeyError where README no longer has a section that a page is made of."""
    pages = {page: "\n".join(map(_section, parts)) for page, parts in PAGES.items()}
    pages |= {page: (ROOT / path).read_text(encoding="utf-8") for page, path in FILES.items()}
    rules = ROOT / "flake8_jitcache" / "pages"
    pages |= {f"rules/{code}.md": (rules / f"{code}.md").read_text(encoding="utf-8") for code in CODES}
    pages["rules/index.md"] = _overview()
    for page, text in pages.items():
        files.append(File.generated(config, page, content=_relinked(text)))
    return files


def _section(heading: str) -> str:
    """A heading of README with what stands under it, its subsections with it. `# Title` gives README's beginning, or a title."""
    if heading == README.split("\n", 1)[0]:
        return README.split("\n## ", 1)[0]
    if heading.startswith("# "):
        return f"{heading}\n"
    parts = dict(re.findall(r"^(## .+)\n((?:(?!## ).*\n?)*)", README, re.MULTILINE))
    return f"{heading}\n{parts[heading]}"


def _overview() -> str:
    rows = [
        f"| [{code.code}]({code.code}.md) | `{code.name}` | {code.summary} | {'on' if code.default else 'off'} |"
        for code in CODES.values()
    ]
    return "\n".join(["# Rules", "", "| code | name | what it finds | default |", "| --- | --- | --- | --- |", *rows])


def _relinked(text: str) -> str:
    """The links to files of the repository, to the pages that they are here; a file that is no page loses its link."""

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group()
        return f"[{label}]({LINKS[target]})" if target in LINKS else label

    text = text.replace("](.docs/pages/", "](")  # a picture lies beside the page there
    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, text)
