"""Objects that jit in their constructor: where they are made and dropped, so are their jits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of, loops_around
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition


def constructor_of(module: Module, creation: Creation) -> Definition | None:
    """The constructor in whose body a creation is kept on `self`, made anew for each object."""
    function = module.source.scopes[creation.node].function
    if not isinstance(function, DEFINITIONS) or function.name != "__init__":
        return None
    holder: ast.AST = module.source.parents[creation.node]
    if creation.definition is not None or not isinstance(holder, ast.Assign):
        return None
    kept = any(
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        for target in holder.targets
    )
    return function if kept and class_of(module.source, function) is not None else None


def dropped(module: Module, constructor: Definition) -> Iterator[tuple[ast.Call, ast.Call]]:
    """The calls in loops that make an object of the constructor's class and drop it, each with a call of a method of
    that object."""
    owner = class_of(module.source, constructor)
    for call in module.source.calls:
        if not isinstance(call.func, ast.Name) or module.definitions.class_of_call(call) is not owner:
            continue
        loops = loops_around(module.source, call)
        if loops and (used := _only_used_in(module, call, loops[0])) is not None:
            yield call, used


def _only_used_in(module: Module, made: ast.Call, loop: ast.AST) -> ast.Call | None:
    """A call of a method of an object, where calls of its methods in the same loop are all that becomes of it."""
    reads: list[ast.expr] = [made]
    parent = module.source.parents[made]
    if isinstance(parent, ast.Assign):
        if len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
            return None
        bindings = module.source.bound_at(parent.targets[0])
        reads = [load for binding in bindings for load in module.source.loads_of(binding)]
    found: ast.Call | None = None
    for read in reads:
        call = _method_call(module, read)
        if call is None or loops_around(module.source, call)[:1] != [loop]:
            return None
        found = call
    return found


def _method_call(module: Module, read: ast.expr) -> ast.Call | None:
    """The call of a method of an object, or of the object itself, that a read of it leads to."""
    parent = module.source.parents[read]
    if isinstance(parent, ast.Attribute):
        read, parent = parent, module.source.parents[parent]
    return parent if isinstance(parent, ast.Call) and parent.func is read else None
