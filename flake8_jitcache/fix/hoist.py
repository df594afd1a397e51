"""JIT101 and JIT103: a lambda or nested function moves to module level, with its jit as a decorator."""

from __future__ import annotations

import ast

from flake8_jitcache.fix import naming
from flake8_jitcache.fix.calls import Sites, can_remove, pass_captures, sites_of_call, sites_of_definition
from flake8_jitcache.fix.captures import assumptions, captures, changes_between
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import check_options, check_room, decorator_for, static_parameters
from flake8_jitcache.fix.moving import comments_lost, definition_lines, function_text, mark_keyword_only, removal
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.scopes import DEFINITIONS, Function


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
        try:
            sites = sites_of_call(document, creation.node)
        except Refused:
            if found:
                raise
            sites = Sites([creation.node], kept=True)
    if any(document.within(site, function) for site in sites.nodes):
        raise Refused("it calls itself")

    assumed = list(around.assumptions)
    if found:
        assumed += check_room(creation, found)
        assumed += assumptions(document, found, creation.maker.is_equinox)
        assumed += [
            f"`{capture.path}` is the same at every call, or each call should see its own"
            for capture in found
            if changes_between(document, capture, creation.node, sites.nodes)
        ]
        mark_keyword_only(function, found)

    names = [function.name] if not isinstance(function, ast.Lambda) else []
    names += naming.telling(name for carrier in carriers if (name := _bound_name(carrier)))
    names += naming.candidates(document, creation.node, function if isinstance(function, ast.Lambda) else None)
    name = naming.choose(document, names, task.taken)
    decorator = decorator_for(document, creation, found)
    moved = function_text(document, function, name, found, decorator.text, decorator.edits)
    gap = document.gap_for(document.top_statement(creation.node), [*decorator.needed, *moved.needed])
    edits, own, behind = _take_out(document, creation.node, function, carriers, sites, name)
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


def _take_out(
    document: Document,
    creation: ast.expr,
    function: Function,
    carriers: list[ast.stmt],
    sites: Sites,
    name: str,
) -> tuple[list[Edit], list[str], str]:
    """The edits that take the old code out and rename what stays, and the comments that must move along."""
    removed = [*sites.removed]
    gone: list[ast.AST] = [*removed, *([] if sites.removed else [creation])]
    for carrier in carriers:
        if _is_unused_without(document, carrier, gone) and can_remove(document, carrier):
            removed.append(carrier)
            gone.append(carrier)
    edits = [removal(document, statement) for statement in removed]
    kept = [definition_lines(document, function) if isinstance(function, DEFINITIONS) else document.span(function)]
    own: list[str] = []
    behind = ""
    for edit in edits:
        lost, last = comments_lost(document, (edit.start, edit.end), kept)
        own += lost
        if last and behind:
            own.append(last)
        else:
            behind = behind or last
    if not sites.removed and creation in sites.nodes:
        where = document.span(creation)
        lost, last = comments_lost(document, where, kept)
        own += [*lost, *([last] if last else [])]
        edits.append(Edit(*where, name))
    for site in sites.nodes:
        if site is not creation and not sites.kept:
            edits.append(Edit(*document.span(site), name))
    return edits, own, behind


def _is_unused_without(document: Document, carrier: ast.stmt, gone: list[ast.AST]) -> bool:
    """Whether a statement that names a function is needed by nothing but what goes."""
    source = document.source
    name = _bound_name(carrier)
    if not name:
        return False
    scope = source.lookup(source.scopes[carrier], name)
    if scope is None or scope.kind != "function" or scope is not source.scopes[carrier]:
        return False
    loads = source.references.get((scope, name), [])
    binding = next((b for b in scope.bindings[name] if b.node is carrier or source.statement(b.node) is carrier), None)
    reading = [load for load in loads if binding is not None and binding in source.reaching(load)]
    return all(any(document.within(load, node) for node in gone) for load in reading)


def _bound_name(carrier: ast.stmt) -> str:
    """The one plain name that a statement binds, or nothing."""
    if isinstance(carrier, DEFINITIONS):
        return carrier.name
    targets = carrier.targets if isinstance(carrier, ast.Assign) else [getattr(carrier, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def with_comments(document: Document, text: str, own: list[str], behind: str) -> str:
    """Put comments that would be lost with the old code on the new one: above it, and at the end of its first line."""
    lines = text.split(document.newline)
    if behind:
        at = next(i for i, line in enumerate(lines) if not line.startswith("#"))
        lines[at] = f"{lines[at]}  {behind}" if "#" not in lines[at] else lines[at]
        if behind not in lines[at]:
            own = [*own, behind]
    return document.newline.join([*own, *lines])
