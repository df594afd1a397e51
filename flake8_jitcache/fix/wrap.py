"""JIT107 and JIT105: the jitted function gets a name at module level, `_grad_loss = jax.jit(jax.grad(loss))`.

Where it is made of a nested function, that one moves along; what it captures becomes arguments, where the transforms
around it only differentiate.
"""

from __future__ import annotations

import ast

from flake8_jitcache.facts import known
from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.fix import naming
from flake8_jitcache.fix.calls import (
    GRADIENTS,
    check_argnums,
    check_sites,
    pass_captures,
    sites_of_call,
    sites_without_arguments,
)
from flake8_jitcache.fix.captures import Capture, assumptions, captures, changes_between
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, Span
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.expansion import Expansion
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import check_options, check_room, with_static
from flake8_jitcache.fix.moving import at_margin, function_text, mark_keyword_only
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.replacing import existing, goes_with, take_out, with_comments


def plan(task: Task) -> Fix:
    """Give the jitted function of a finding a name at module level."""
    document, creation = task.document, task.lifetime.creation
    if creation.definition is not None or not isinstance(creation.node, ast.Call):
        raise Refused("it is made by a decorator")
    call = creation.node
    check_options(document, creation)
    expansion = Expansion(document)
    expansion.read(call)
    assumed: list[str] = []
    moved_as: dict[Function, list[Capture]] = {}
    if task.finding.code != "JIT107":  # there, the trace is kept already
        assumed += check_seen(document, call)
    around = effects(document.module, expansion.functions)
    assumed += around.assumptions
    captured: list[Capture] = []
    for function in expansion.functions:
        found = captures(document, function, around.changing, frozenset())
        moved_as[function] = found
        if found:
            _check_differentiates(document, call, function, found)
            captured = found
    sites = (sites_of_call if captured else sites_without_arguments)(document, call)
    check_sites(document, sites)
    assumed += expansion.assumptions
    if captured:
        assumed += check_room(creation, captured)
        assumed += assumptions(document, captured, call, equinox=creation.maker.is_equinox)
        assumed += [
            f"`{capture.path}` is the same at every call, or each call should see its own"
            for capture in captured
            if changes_between(document, capture, call, sites.nodes)
        ]

    edits: list[Edit] = []
    above: list[str] = []
    needed = list(expansion.needed)
    lambdas: dict[Span, str] = {}
    for function in expansion.functions:
        found = moved_as[function]
        if not isinstance(function, DEFINITIONS) and not found:
            continue
        inner = _inner_name(function, call, document)
        expansion.renamed[function] = naming.choose(document, inner, task.taken)
        if found:
            mark_keyword_only(function, found)
        moved = function_text(document, function, expansion.renamed[function], found, None)
        above.append(moved.text)
        needed += moved.needed
        assumed += moved.assumptions
        if isinstance(function, DEFINITIONS):
            if not goes_with(document, function, [*expansion.carriers, *sites.removed, call]):
                raise Refused(f"`{function.name}` is used without its jit as well")
        else:
            lambdas[document.span(function)] = expansion.renamed[function]
    text = expansion.text(call, lambdas)
    static = [capture.parameter for capture in captured if capture.is_static and not creation.maker.is_equinox]
    if static:
        text = with_static(creation, text, static)
    text = at_margin(document, text, call)
    known_name = None if above else existing(document, call, text)
    name = known_name or naming.choose(document, _names(document, task, call, expansion), task.taken)
    taken_out, own, behind = take_out(document, call, expansion.kept, expansion.carriers, sites, name)
    edits += taken_out
    edits += pass_captures(document, sites, call, captured)
    if known_name is None:
        gap = document.gap_for(document.top_statement(call), needed)
        line = with_comments(document, f"{name} = {text}", own, behind)
        edits.append(gap.insert((document.newline * 3).join([*above, line])))
    return Fix(edits, assumed, defines="" if above else text)


def check_seen(document: Document, call: ast.Call) -> list[str]:
    """What running the functions of this file behind a jit once per trace assumes. Raises Refused."""
    functions = document.module.traced.inside(call)
    around = effects(document.module, functions)
    nested = {function for function in functions if document.source.scopes[function].function is not None}
    if around.changing and len(nested) < len(functions):
        raise Refused(f"what it calls reads the global `{min(around.changing)}`, which changes")
    return around.assumptions


def _check_differentiates(document: Document, call: ast.Call, function: Function, found: list[Capture]) -> None:
    """Captured values can become arguments where only gradients stand between the jit and the function."""
    node: ast.expr = call
    names = " and ".join(f"`{capture.path}`" for capture in found)
    for _ in range(20):
        if not isinstance(node, ast.Call) or not node.args:
            break
        if node is not call:
            dotted = document.module.names.dotted(node.func)
            if not dotted or not dotted <= GRADIENTS:
                what = ast.unparse(node.func)
                raise Refused(f"it captures {names}, and `{what}` would not pass more arguments on as they are")
            check_argnums(node)
        node = node.args[0]
        while isinstance(node, ast.Name):
            bindings = document.source.reaching(node)
            if len(bindings) != 1:
                break
            if bindings[0].node is function:
                return
            if bindings[0].value is None:
                break
            node = bindings[0].value
        if node is function:
            return
    raise Refused(f"it captures {names}")


def _inner_name(function: Function, call: ast.Call, document: Document) -> list[str]:
    if isinstance(function, DEFINITIONS):
        return [function.name]
    return [f"{name}_of" for name in naming.candidates(document, call, None)]


def _names(document: Document, task: Task, call: ast.Call, expansion: Expansion) -> list[str]:
    """Names for the wrapper, best first."""
    if task.finding.code == "JIT107":
        target = call.args[0] if call.args else call.keywords[0].value
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "function")
        return [f"jitted_{name.strip('_')}"]
    parent = document.source.parents[call]
    bound = naming.candidates(document, call, None)
    variable = isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
    chain = _chain(document, call)
    if variable and naming.telling([_target_name(parent)]):
        return bound
    return [*([chain] if chain else []), *bound]


def _target_name(node: ast.AST) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _chain(document: Document, call: ast.Call) -> str:
    """What a chain of transforms does to which function: `grad_loss` of `jit(grad(loss))`."""
    parts: list[str] = []
    node: ast.expr = call
    while isinstance(node, ast.Call) and node.args:
        dotted = document.module.names.dotted(node.func)
        if node is not call:
            if not dotted & (known.TRANSFORMS | known.PARTIALS):
                return ""
            if not dotted & known.PARTIALS:
                parts.append(min(dotted).rpartition(".")[2])
        node = node.args[0]
        if isinstance(node, ast.Name):
            bindings = document.source.reaching(node)
            if len(bindings) == 1 and bindings[0].kind == "assign" and isinstance(bindings[0].value, ast.Call):
                node = bindings[0].value
    if isinstance(node, ast.Attribute):
        return "_".join([*parts, node.attr.strip("_")])
    return "_".join([*parts, node.id.strip("_")]) if isinstance(node, ast.Name) else ""
