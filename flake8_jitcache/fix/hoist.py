"""JIT101 and JIT103: a lambda or nested function moves to module level, with its jit as a decorator."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.fix import naming
from flake8_jitcache.fix.calls import (
    check_sites,
    pass_captures,
    sites_of_call,
    sites_of_definition,
    sites_without_arguments,
)
from flake8_jitcache.fix.captures import assumptions, captures, changes_between
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import check_options, check_room, decorator_for, static_parameters
from flake8_jitcache.fix.moving import function_text, kept_spans, mark_keyword_only
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.replacing import bound_name, goes_with, take_out, with_comments


def plan(task: Task) -> Fix:
    """Hoist the jitted function of a finding."""
    document, creation = task.document, task.lifetime.creation
    if creation.target is None:
        raise Refused("what is jitted can't be seen")
    function, carriers = jitted_function(document, creation.target)
    check_options(document, creation)
    around = effects(document.module, [function])
    found = captures(document, function, around.changing, static_parameters(creation, function))
    if creation.definition is not None:
        sites = sites_of_definition(document, creation.definition)
        if found and len(creation.definition.decorator_list) > 1:
            raise Refused("it captures values, and has a second decorator that may not pass them on")
    else:
        find = sites_of_call if found else sites_without_arguments
        sites = find(document, creation.node)
    check_sites(document, sites)
    if any(document.within(site, function) for site in sites.nodes):
        raise Refused("it calls itself")

    assumed = list(around.assumptions)
    if found:
        assumed += check_room(creation, found)
        assumed += assumptions(document, found, creation.node, equinox=creation.maker.is_equinox)
        assumed += [
            f"`{capture.path}` is the same at every call, or each call should see its own"
            for capture in found
            if changes_between(document, capture, creation.node, sites.nodes)
        ]
        mark_keyword_only(function, found)

    names = [function.name] if not isinstance(function, ast.Lambda) else []
    names += naming.telling(name for carrier in carriers if (name := bound_name(carrier)))
    names += naming.candidates(document, creation.node, function if isinstance(function, ast.Lambda) else None)
    name = naming.choose(document, names, task.taken)
    decorator = decorator_for(document, creation, found)
    moved = function_text(document, function, name, found, decorator.text, decorator.edits)
    gap = document.gap_for(document.top_statement(creation.node), [*decorator.needed, *moved.needed])
    if (
        isinstance(function, DEFINITIONS)
        and creation.definition is None
        and not goes_with(document, function, [*sites.removed, creation.node])
    ):
        raise Refused(f"`{function.name}` is used without its jit as well")
    edits, own, behind = take_out(document, creation.node, kept_spans(document, function), carriers, sites, name)
    text = with_comments(document, moved.text, own, behind)
    edits += [gap.insert(text), *decorator.imports, *pass_captures(document, sites, creation.node, found)]
    return Fix(edits, assumed + moved.assumptions)


def jitted_function(document: Document, target: ast.expr | ast.AST) -> tuple[Function, list[ast.stmt]]:
    """The function or lambda that a jit's target surely is, and the statements that only give it a name."""
    carriers: list[ast.stmt] = []
    node: ast.AST = target
    for _ in range(8):
        if isinstance(node, (ast.Lambda, *DEFINITIONS)):
            return node, carriers
        if not isinstance(node, ast.Name):
            break
        bindings = document.source.reaching(node)
        if len(bindings) != 1:
            raise Refused(f"`{node.id}` may be one of several functions")
        binding = bindings[0]
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            if binding.node.decorator_list:
                raise Refused(f"`{node.id}` has decorators of its own")
            carriers.append(binding.node)
            node = binding.node
        elif binding.kind == "assign" and binding.value is not None:
            statement = document.source.parents[binding.value]
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                carriers.append(statement)
            node = binding.value
        else:
            break
    raise Refused("which function is jitted is not certain")
