"""Where a jitted function is used, and passing it more arguments there."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from flake8_jitcache.facts.scopes import Binding, Definition
from flake8_jitcache.fix.captures import Capture
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, span
from flake8_jitcache.fix.refusal import Refused

# Transforms that differentiate by position: more arguments behind leave what they give as it is.
GRADIENTS = frozenset(
    {f"jax.{name}" for name in "grad value_and_grad jacfwd jacrev jacobian hessian".split()}
    | {"equinox.filter_grad", "equinox.filter_value_and_grad"}
)
_STAGES = frozenset({"lower", "trace", "eval_shape"})
_STAGED = frozenset({"compile"})
_VIEWS = frozenset({"__wrapped__", "__doc__", "as_text"})


@dataclass
class Sites:
    """The places where a jitted function is used.

    nodes: expressions that stand for it. removed: statements that only gave it a name, to be taken out. kept: whether
    its local name stays, so that the nodes are not renamed. complete: whether these are all.
    """

    nodes: list[ast.expr] = field(default_factory=list)
    removed: list[ast.stmt] = field(default_factory=list)
    kept: bool = False
    complete: bool = True


def sites_of_call(document: Document, creation: ast.expr) -> Sites:
    """The sites of a jit that is called: the call itself, or the loads of the one local name that it is given."""
    source = document.source
    parent = source.parents[creation]
    if not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        return Sites([creation])
    targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise Refused("it is bound to more than one plain name")
    target = targets[0]
    scope = source.lookup(source.scopes[target], target.id)
    if scope is None:
        raise Refused(f"where `{target.id}` is bound can't be seen")
    binding = next((b for b in scope.bindings.get(target.id, ()) if b.node is target), None)
    if binding is None:
        raise Refused(f"`{target.id}` is bound in another scope")
    loads = document.loads_of(binding)
    sole = _is_sole(document, binding, loads)
    if sole and isinstance(parent, ast.stmt) and can_remove(document, parent):
        return Sites(list(loads), [parent])
    return Sites([creation, *loads] if sole else [creation], kept=True, complete=sole)


def sites_of_definition(document: Document, definition: Definition) -> Sites:
    """The sites of a decorated nested function: the loads of its name."""
    scope = document.source.scopes[definition]
    binding = next(b for b in scope.bindings[definition.name] if b.node is definition)
    loads = document.loads_of(binding)
    if not _is_sole(document, binding, loads):
        raise Refused(f"`{definition.name}` is bound in more than one place")
    if not can_remove(document, definition):
        raise Refused(f"`{definition.name}` shares its lines, or is all that its block has")
    return Sites(list(loads), [definition])


def _is_sole(document: Document, binding: Binding, loads: list[ast.Name]) -> bool:
    """Whether each load that sees a binding sees no other one."""
    return binding.scope.kind == "function" and all(document.source.reaching(load) == [binding] for load in loads)


def can_remove(document: Document, statement: ast.stmt) -> bool:
    """Whether a statement can go with its lines: it has them for itself, and its block has others."""
    parent = document.source.parents[statement]
    block = getattr(parent, document.source.fields[statement], [])
    rest = [s for s in block if s is not statement and not _is_docstring(s)] if isinstance(block, list) else []
    return bool(rest) and document.stands_alone(statement)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def check_sites(document: Document, sites: Sites) -> None:
    """Whether a function that now is one for all calls is used as one: nothing is set on it. Raises Refused."""
    for site in sites.nodes:
        parent = document.source.parents[site]
        if isinstance(parent, ast.Attribute) and parent.attr not in _STAGES | _VIEWS:
            raise Refused(f"line {site.lineno} uses its attribute `{parent.attr}`")


def sites_without_arguments(document: Document, creation: ast.expr) -> Sites:
    """The sites of a jit that needs no more arguments: where they can't all be seen, its value alone is replaced."""
    try:
        return sites_of_call(document, creation)
    except Refused:
        return Sites([creation], kept=True, complete=False)


def called_sites(document: Document, sites: Sites, creation: ast.expr) -> list[ast.expr]:
    """The sites whose calls have to pass more arguments. Raises Refused where they can't all be seen."""
    named = document.source.parents[creation]
    if not isinstance(named, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or not sites.kept:
        return sites.nodes
    if not sites.complete:
        raise Refused("which calls see it is not certain")
    if isinstance(named, ast.NamedExpr) and isinstance(
        document.source.parents[named], (ast.Call, ast.Attribute, ast.keyword)
    ):
        raise Refused("it is named and used in one expression")
    return [site for site in sites.nodes if site is not creation]


def pass_captures(document: Document, sites: Sites, creation: ast.expr, found: list[Capture]) -> list[Edit]:
    """The edits that pass captured values at every site. Raises Refused where a site is no call that can take them."""
    edits: list[Edit] = []
    if not found:
        return edits
    source = document.source
    for site in called_sites(document, sites, creation):
        for capture in found:
            if source.lookup(source.scopes[site], capture.root) is not capture.scope:
                raise Refused(f"`{capture.root}` is another one where it is called in line {site.lineno}")
        if isinstance(source.parents[site], ast.Attribute) and any(capture.is_static for capture in found):
            raise Refused(f"it is staged ahead of time in line {site.lineno}, and needs a static argument")
        for call in calls_to_extend(document, site):
            edits.append(more_arguments(document, call, found))
    return edits


def calls_to_extend(document: Document, site: ast.expr) -> list[ast.Call]:
    """The calls that pass arguments to the function a site stands for."""
    source = document.source
    parent = source.parents[site]
    if isinstance(parent, ast.Call) and parent.func is site:
        return [parent]
    if isinstance(parent, ast.Attribute) and parent.attr in _STAGES:
        staged = source.parents[parent]
        if isinstance(staged, ast.Call) and staged.func is parent:
            return [staged, *_after_staging(document, staged)]
    if isinstance(parent, ast.Call) and parent.args[:1] == [site]:
        dotted = document.module.names.dotted(parent.func)
        outer = source.parents[parent]
        if dotted and dotted <= GRADIENTS and isinstance(outer, ast.Call) and outer.func is parent:
            check_argnums(parent)
            return [outer]
    raise Refused(f"it is used in line {site.lineno} other than by calling it")


def check_argnums(gradient: ast.Call) -> None:
    """Whether a gradient is taken by parameters that keep their numbers when more come behind. Raises Refused."""
    given = [*gradient.args[1:2], *(k.value for k in gradient.keywords if k.arg in ("argnums", None))]
    for value in given:
        numbers = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        if not all(isinstance(n, ast.Constant) and isinstance(n.value, int) for n in numbers):
            raise Refused(f"`{ast.unparse(gradient.func)}` may count its `argnums` from the end, where more come")


def _after_staging(document: Document, staged: ast.Call) -> list[ast.Call]:
    source = document.source
    parent = source.parents[staged]
    if not isinstance(parent, ast.Attribute) or parent.attr not in _STAGED:
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            raise Refused(f"what it is staged to in line {staged.lineno} is kept under a name")
        return []
    compiled = source.parents[parent]
    if isinstance(compiled, ast.Call):
        called = source.parents[compiled]
        if isinstance(called, ast.Call) and called.func is compiled:
            return [called]
        raise Refused(f"what it is compiled to in line {staged.lineno} is kept under a name")
    return []


def more_arguments(document: Document, call: ast.Call, found: list[Capture]) -> Edit:
    """Pass captured values in a call, behind what it passes already: by position where that is certain to fit."""
    by_keyword = (
        bool(call.keywords)
        or any(isinstance(argument, ast.Starred) for argument in call.args)
        or any(capture.is_static for capture in found)
        or any(capture.keyword_only for capture in found)
    )
    if any(keyword.arg in {capture.parameter for capture in found} for keyword in call.keywords):
        raise Refused(f"line {call.lineno} passes an argument of that name already")
    text = ", ".join(f"{c.parameter}={c.path}" if by_keyword else c.path for c in found)
    return add_arguments(document, call, text)


def add_arguments(document: Document, call: ast.Call, text: str, *, first: bool = False) -> Edit:
    """Put text into the parentheses of a call, in front of its arguments or behind them."""
    node = document.grammar.node(document.span(call), "call")
    arguments = node.field("arguments")
    if arguments is None or arguments.kind() != "argument_list":
        raise Refused(f"line {call.lineno} passes a generator without parentheses of its own")
    given = [child for child in arguments.children() if child.is_named() and child.kind() != "comment"]
    if not given:
        at = span(arguments)[0] + 1
        return Edit(at, at, text)
    at = span(given[0])[0] if first else span(given[-1])[1]
    return Edit(at, at, f"{text}, " if first else f", {text}")
