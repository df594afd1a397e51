"""From a tree to its findings: every family of rules over one module."""

from __future__ import annotations

import ast
from collections.abc import Callable

from flake8_jitcache.depth import with_deep_stack
from flake8_jitcache.facts.module import Module
from flake8_jitcache.findings import Finding, one_a_place
from flake8_jitcache.options import Options
from flake8_jitcache.rules import captured, lifetimes, loops, statics

# What needs a jit in the file, and what is off by default altogether.
FAMILIES = (lifetimes.check, captured.check, statics.check)
OPT_IN_FAMILIES = (loops.check,)


def findings(
    tree: ast.Module,
    options: Options,
    filename: str = "",
    *,
    opt_in: bool = True,
    complain: Callable[[Exception], None] | None = None,
) -> list[Finding]:
    """All findings of a module, in source order, one a place. The file's name tells test modules from others.

    Without `opt_in`, families that are off by default as a whole are left out. Where `complain` is given, it gets the
    exception that a bug of a family raises, and the findings of the others are kept.
    """

    def work() -> list[Finding]:
        module = Module(tree, options, filename)
        families = FAMILIES if module.jits.creations else ()
        found: list[Finding] = []
        for family in (*families, *(OPT_IN_FAMILIES if opt_in else ())):
            try:
                found += family(module)
            except RecursionError:
                raise  # and begin again with more room
            except Exception as error:
                if complain is None:
                    raise
                complain(error)
        return one_a_place(found)

    try:
        return with_deep_stack(work)
    except Exception as error:
        if complain is None:
            raise
        complain(error)
        return []
