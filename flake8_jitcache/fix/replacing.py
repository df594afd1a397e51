"""Taking old code out: statements that are not needed any more, the old expression, and the comments they leave."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.scopes import DEFINITIONS
from flake8_jitcache.fix.calls import Sites, can_remove
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, Span
from flake8_jitcache.fix.moving import comments_lost, removal

_LONG = 100  # a comment goes above a line that it would make longer


def take_out(
    document: Document,
    creation: ast.expr,
    kept: list[Span],
    carriers: list[ast.stmt],
    sites: Sites,
    name: str,
) -> tuple[list[Edit], list[str], str]:
    """The edits that take the old code out and rename what stays, and the comments that must move along."""
    removed = [*sites.removed]
    gone: list[ast.AST] = [*removed, *([] if sites.removed else [creation])]
    for carrier in carriers:
        if goes_with(document, carrier, gone):
            removed.append(carrier)
            gone.append(carrier)
    edits = [removal(document, statement) for statement in removed]
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


def goes_with(document: Document, carrier: ast.stmt, gone: list[ast.AST]) -> bool:
    """Whether a statement that names something is needed by nothing but what goes, and can go with it."""
    source = document.source
    name = bound_name(carrier)
    if not name:
        return False
    scope = source.lookup(source.scopes[carrier], name)
    if scope is None or scope.kind != "function" or scope is not source.scopes[carrier]:
        return False
    loads = source.references.get((scope, name), [])
    binding = next((b for b in scope.bindings[name] if b.node is carrier or source.statement(b.node) is carrier), None)
    reading = [load for load in loads if binding is not None and binding in source.reaching(load)]
    unused = all(any(document.within(load, node) for node in gone) for load in reading)
    return unused and can_remove(document, carrier)


def bound_name(carrier: ast.stmt) -> str:
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
        if "#" not in lines[at] and len(lines[at]) + len(behind) < _LONG:
            lines[at] = f"{lines[at]}  {behind}"
        else:
            own = [*own, behind]
    return document.newline.join([*own, *lines])


def existing(document: Document, node: ast.expr, text: str) -> str | None:
    """The name at module level that stands for the value of an expression already, as seen from a node; or None."""
    wanted = ast.dump(ast.parse(text, mode="eval").body)
    holder = document.top_statement(node)
    for statement in document.tree.body:
        if not isinstance(statement, ast.Assign) or ast.dump(statement.value) != wanted:
            continue
        name = bound_name(statement)
        before = statement.lineno < holder.lineno or isinstance(holder, (*DEFINITIONS, ast.ClassDef))
        if (
            name
            and before
            and len(document.source.module.bindings[name]) == 1
            and document.source.lookup(document.source.scopes[node], name) is document.source.module
        ):
            return name
    return None
