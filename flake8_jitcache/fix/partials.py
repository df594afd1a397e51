"""JIT102: `jit(partial(f, a))(x)` becomes `_jitted_f(a, x)`: `f` is jitted at module level, and takes what was bound.

Where nothing of the call is bound to (`partial(f, 2)`), the partial itself moves to module level.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.facts import known
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.scopes import DEFINITIONS, Function
from flake8_jitcache.fix import naming, wrap
from flake8_jitcache.fix.calls import Sites, add_arguments, called_sites, calls_to_extend, sites_of_call
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import check_options, names_text, options_of, own_options
from flake8_jitcache.fix.operands import Use, Uses
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.replacing import existing, take_out, with_comments
from flake8_jitcache.fix.stable_names import is_constant, is_mutated


@dataclass
class Bound:
    """An argument that a partial binds: by position, or by name. `parameter` is its name in the function, where that
    can be seen."""

    value: ast.expr
    position: int | None
    parameter: str
    use: Use

    @property
    def is_static(self) -> bool:
        return self.use >= Use.STATIC


def plan(task: Task) -> Fix:
    """Jit the function of a jitted partial at module level."""
    try:
        return wrap.plan(task)
    except Refused:
        return _with_arguments(task)


def _with_arguments(task: Task) -> Fix:
    document, creation = task.document, task.lifetime.creation
    call = creation.node
    if creation.definition is not None or not isinstance(call, ast.Call) or not isinstance(creation.target, ast.expr):
        raise Refused("it is made by a decorator")
    check_options(document, creation)
    partial, carriers = _partial(document, creation.target)
    target = partial.args[0]
    needed = [*document.names_in(call.func), *_stable(document, target)]
    for option in options_of(creation):
        needed += document.names_in(option.value)
    functions = document.module.definitions.functions(target)
    bound = _bound(document, partial, functions[0] if len(functions) == 1 else None)
    around = effects(document.module, functions)
    if around.changing:
        raise Refused(f"`{ast.unparse(target)}` reads the global `{min(around.changing)}`, which changes")
    static = _static_options(creation, bound)
    sites = sites_of_call(document, call)
    assumed = [*around.assumptions, *_assumptions(document, bound, target)]
    assumed += _order(document, partial, call, sites, bound)

    base = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "function")
    options = [f"{o.arg}={document.segment(o.value)}" for o in own_options(creation, call)]
    text = f"{document.segment(call.func)}({', '.join([document.segment(target), *options, *static])})"
    known_name = existing(document, call, text)
    name = known_name or naming.choose(document, [f"jitted_{base.strip('_')}"], task.taken)
    kept = [document.span(target), *(document.span(b.value) for b in bound)]
    edits, own, behind = take_out(document, call, kept, carriers, sites, name)
    for site in called_sites(document, sites, call):
        edits += _pass(document, site, bound)
    if known_name is None:
        gap = document.gap_for(document.top_statement(call), needed)
        edits.append(gap.insert(with_comments(document, f"{name} = {text}", own, behind)))
    return Fix(edits, assumed, defines=text)


def _partial(document: Document, target: ast.expr) -> tuple[ast.Call, list[ast.stmt]]:
    """The call of `partial` that a jit's target surely is, and the statements that only give it a name."""
    carriers: list[ast.stmt] = []
    node = target
    for _ in range(8):
        if isinstance(node, ast.Call):
            if not node.args or not document.module.names.dotted(node.func) & known.PARTIALS:
                break
            return node, carriers
        if not isinstance(node, ast.Name):
            break
        bindings = document.source.reaching(node)
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].value is None:
            break
        statement = document.source.parents[bindings[0].value]
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            carriers.append(statement)
        node = bindings[0].value
    raise Refused("which partial is jitted is not certain")


def _stable(document: Document, target: ast.expr) -> list[ast.Name]:
    """The names that a partial's function is made of: of the module, and the same each time."""
    if not isinstance(target, (ast.Name, ast.Attribute)):
        raise Refused(f"`{ast.unparse(target)}` is made on each call")
    names = list(document.names_in(target))
    for name in names:
        owner = document.owner(name)
        if owner is not None and owner is not document.source.module:
            raise Refused(f"`{ast.unparse(target)}` is known inside the function only")
        if owner is not None and not is_constant(document.module, name.id):
            raise Refused(f"`{name.id}` changes")
    if isinstance(target, ast.Attribute) and not document.module.names.dotted(target):
        raise Refused(f"`{ast.unparse(target)}` is looked up on an object")
    return names


def _bound(document: Document, partial: ast.Call, function: Function | None) -> list[Bound]:
    found = []
    called = _called_by_jax(document, partial.args[0])
    positional = [] if function is None else [p.arg for p in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(function, DEFINITIONS) and function.decorator_list:
        function = None
    for index, argument in enumerate(partial.args[1:]):
        if isinstance(argument, ast.Starred):
            raise Refused("the partial binds `*`")
        name = positional[index] if index < len(positional) else ""
        use = Use.CALLED if index in called else _use(document, argument, function, name)
        found.append(Bound(argument, index, name, use))
    for keyword in partial.keywords:
        if keyword.arg is None:
            raise Refused("the partial binds `**`")
        found.append(Bound(keyword.value, None, keyword.arg, _use(document, keyword.value, function, keyword.arg)))
    return found


def _called_by_jax(document: Document, target: ast.expr) -> tuple[int, ...]:
    """The positions at which a function of JAX takes functions."""
    dotted = document.module.names.dotted(target)
    if dotted & (known.TRANSFORMS | {"jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map"}):
        return (0,)
    return next((known.CONTROL_FLOW[name] for name in dotted if name in known.CONTROL_FLOW), ())


def _use(document: Document, value: ast.expr, function: Function | None, name: str) -> Use:
    found = Use.TREE
    if function is not None and name:
        found = Uses(document.module).of_parameter(function, name)
    if isinstance(value, ast.Constant) and found is not Use.ARRAY:
        return Use.STATIC  # a literal stays what it is
    return found


def _static_options(creation: Creation, bound: list[Bound]) -> list[str]:
    """The options that make bound values static. Raises Refused where the options do not allow it."""
    given = {option.arg for option in options_of(creation)}
    in_front = [b for b in bound if b.position is not None]
    if creation.maker.is_pmap:
        if given or any(not b.is_static or b.position is None for b in bound):
            raise Refused("`pmap` would split what is bound along its first axis")
        numbers = ", ".join(str(b.position) for b in bound)
        return [f"static_broadcasted_argnums={numbers if len(bound) == 1 else f'({numbers})'}"]
    refused = given - {"static_argnames", "keep_unused", "inline", "backend"}
    if refused and (in_front or refused - {"static_argnums"}):
        raise Refused(f"`{min(refused, key=str)}` counts the parameters that are left")
    if creation.maker.is_equinox:
        return []
    static = [b for b in bound if b.is_static]
    if not static:
        return []
    if given & {"static_argnames", "static_argnums"}:
        raise Refused("a bound value has to be static, and static parameters are given already")
    if all(b.parameter for b in static):
        return [f"static_argnames={names_text([b.parameter for b in static])}"]
    if any(b.position is None for b in static):
        raise Refused("a bound value has to be static, and which parameter it is can't be seen")
    numbers = ", ".join(str(b.position) for b in static)
    return [f"static_argnums={numbers if len(static) == 1 else f'({numbers})'}"]


def _assumptions(document: Document, bound: list[Bound], target: ast.expr) -> list[str]:
    result = []
    for one in bound:
        written = ast.unparse(one.value)
        if isinstance(one.value, ast.Constant):
            continue
        if one.use is Use.TREE:
            result.append(
                f"`{written}` holds arrays and numbers only, and `{ast.unparse(target)}` decides no shape or control "
                "flow by it"
            )
        elif one.use is Use.CALLED:
            result.append(f"`{written}` is hashable and compares equal from call to call")
        elif one.is_static:
            result.append(f"`{written}` is hashable")
    return result


def _order(document: Document, partial: ast.Call, call: ast.Call, sites: Sites, bound: list[Bound]) -> list[str]:
    """Bound values were read where the partial was made; now they are read at each call."""
    source = document.source
    direct = sites.nodes == [call] and partial in call.args
    result = []
    for one in bound:
        value = one.value
        if isinstance(value, ast.Constant) or (direct and one.position is not None):
            continue
        if not isinstance(value, (ast.Name, ast.Attribute)):
            raise Refused(f"`{ast.unparse(value)}` is evaluated where the partial is made")
        for name in document.names_in(value):
            owner = document.owner(name)
            if owner is None:
                continue
            for site in sites.nodes:
                if source.lookup(source.scopes[site], name.id) is not owner:
                    raise Refused(f"`{name.id}` is another one where it is called in line {site.lineno}")
            here = source.reaching(name)
            bindings = owner.bindings[name.id]
            moved = any(source.reaching_at(site, bindings) != here for site in sites.nodes) and len(bindings) > 1
            changed = is_mutated(document.module, source.references.get((owner, name.id), []))
            if moved or changed or (isinstance(value, ast.Attribute) and not direct):
                result.append(f"`{ast.unparse(value)}` is the same at each call as where the partial is made")
    return result


def _pass(document: Document, site: ast.expr, bound: list[Bound]) -> list[Edit]:
    """Pass what was bound at one call: positions in front, names behind."""
    parent = document.source.parents[site]
    calls = calls_to_extend(document, site)
    if not isinstance(parent, ast.Call) or calls != [parent] or parent.func is not site:
        raise Refused(f"it is used in line {site.lineno} other than by calling it")
    names = {b.parameter for b in bound if b.position is None}
    if any(keyword.arg is None or keyword.arg in names for keyword in parent.keywords):
        raise Refused(f"line {parent.lineno} may pass what the partial binds")
    first = ", ".join(document.segment(b.value) for b in bound if b.position is not None)
    last = ", ".join(f"{b.parameter}={document.segment(b.value)}" for b in bound if b.position is None)
    if not parent.args and not parent.keywords:
        return [add_arguments(document, parent, ", ".join(filter(None, [first, last])))]
    edits = []
    if first:
        edits.append(add_arguments(document, parent, first, first=True))
    if last:
        edits.append(add_arguments(document, parent, last))
    return edits
