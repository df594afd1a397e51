"""From a tree to its findings: every family of rules over one module."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from flake8_jitcache.depth import with_deep_stack
from flake8_jitcache.facts.module import Module
from flake8_jitcache.findings import Finding, one_a_place
from flake8_jitcache.options import Options
from flake8_jitcache.rules import captured, lifetimes, loops, statics


@dataclass
class Analysis:
    """One module as the linter sees it, for who shows the findings and for who mends them."""

    module: Module
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def lifetimes(self) -> lifetimes.Lifetimes:
        return lifetimes.Lifetimes(self.module)


Family = Callable[[Analysis], "list[Finding]"]

# What needs a jit in the file, and what is off by default altogether.
FAMILIES: tuple[Family, ...] = (
    lambda of: list(lifetimes.check(of.lifetimes)),
    lambda of: list(captured.check(of.module)),
    lambda of: list(statics.check(of.module)),
)
OPT_IN_FAMILIES: tuple[Family, ...] = (lambda of: list(loops.check(of.module)),)


def analyse(
    tree: ast.Module,
    options: Options,
    filename: str = "",
    *,
    opt_in: bool = True,
    complain: Callable[[Exception], None] | None = None,
) -> Analysis:
    """A module with all its findings, in source order, one a place. The file's name tells test modules from others.

    Without `opt_in`, families that are off by default as a whole are left out. Where `complain` is given, it gets the
    exception that a bug of a family raises, and the findings of the others are kept.
    """

    def work() -> Analysis:
        analysis = Analysis(Module(tree, options, filename))
        families = FAMILIES if analysis.module.jits.creations else ()
        found: list[Finding] = []
        for family in (*families, *(OPT_IN_FAMILIES if opt_in else ())):
            try:
                found += family(analysis)
            except RecursionError:
                raise  # and begin again with more room
            except Exception as error:
                if complain is None:
                    raise
                complain(error)
        analysis.findings = one_a_place(found)
        return analysis

    return with_deep_stack(work)


def findings(
    tree: ast.Module,
    options: Options,
    filename: str = "",
    *,
    opt_in: bool = True,
    complain: Callable[[Exception], None] | None = None,
) -> list[Finding]:
    """The findings of a module alone; none where its facts can't be read, and there is somebody to complain to."""
    try:
        return analyse(tree, options, filename, opt_in=opt_in, complain=complain).findings
    except Exception as error:
        if complain is None:
            raise
        complain(error)
        return []
