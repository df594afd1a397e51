"""From a tree to its findings: every family of rules over one module."""

from __future__ import annotations

import ast

from flake8_jitcache import captured, lifetimes, loops, statics
from flake8_jitcache.findings import Finding, one_a_place
from flake8_jitcache.module import Module
from flake8_jitcache.options import Options

FAMILIES = (lifetimes.check, captured.check, statics.check, loops.check)


def findings(tree: ast.Module, options: Options, filename: str = "") -> list[Finding]:
    """All findings of a module, in source order, one a place. The file's name tells test modules from others."""
    module = Module(tree, options, filename)
    return one_a_place(finding for family in FAMILIES for finding in family(module))
