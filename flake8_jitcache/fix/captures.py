"""What a function reads from around it, and how each of these values can be passed to it instead."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from flake8_jitcache.facts.array_functions import ARRAY_ARGUMENTS, ARRAY_METHODS, OF_ARRAYS, STATIC_POSITIONS
from flake8_jitcache.facts.places import functions_around
from flake8_jitcache.facts.scopes import COMPREHENSIONS, DEFINITIONS, FUNCTIONS, Binding, Function, Scope, parameters_of
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.operands import Use, Uses
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.stable_names import is_mutated
from flake8_jitcache.rules.values import Values


@dataclass
class Capture:
    """A value from around a function: a name, or a path of attributes such as `self.rate`.

    path: as the code writes it. parameter: the name of the parameter that it becomes. reads: where it is read.
    scope: the scope that binds the root of the path. use: the most demanding use. keyword_only: whether it can be passed
    by name only. sometimes: whether a call may end without reading it.
    """

    path: str
    scope: Scope
    root: str
    parameter: str = ""
    reads: list[ast.expr] = field(default_factory=list)
    use: Use = Use.ARRAY
    keyword_only: bool = False
    sometimes: bool = False

    @property
    def bindings(self) -> list[Binding]:
        return self.scope.bindings[self.root]

    @property
    def is_static(self) -> bool:
        return self.use >= Use.STATIC


def captures(document: Document, function: Function, changing: set[str], static: frozenset[str]) -> list[Capture]:
    """The values that a function reads from around it, in the order in which it reads them first. `changing` are the
    module-level names that count, `static` its own parameters that are not traced. Raises Refused."""
    source = document.source
    own = source.scope_of_function[function]
    loads: list[tuple[ast.Name, Scope]] = []
    for scope in source.all_scopes:
        if not scope.is_within(own):
            continue
        for name, found in scope.loads.items():
            owner = source.lookup(scope, name)
            if owner is None or owner.is_within(own):
                continue
            if owner is source.module and name not in changing:
                continue
            if owner.kind == "type parameters":
                raise Refused(f"it reads the type parameter `{name}`")
            _check_import(name, owner)
            loads += [(load, owner) for load in found]
    result = _group(document, sorted(loads, key=lambda pair: (pair[0].lineno, pair[0].col_offset)))
    _check(document, function, result)
    for capture in result:
        if not any(_is_read_always(document, read, function) for read in capture.reads):
            capture.sometimes = True
    _name(document, function, result)
    for capture in result:
        capture.use = Uses(document.module).of(capture.reads, function, static)
    return result


def _check_import(name: str, owner: Scope) -> None:
    """What is imported is no value to pass. Raises Refused."""
    bindings = owner.bindings[name]
    if not any(binding.kind == "import" for binding in bindings):
        return
    if owner.kind == "module":
        lines = " and ".join(str(binding.node.lineno) for binding in bindings[:2])  # type: ignore[attr-defined]
        raise Refused(f"`{name}` may be different things at module level (lines {lines})")
    where = getattr(owner.function, "name", "a function")
    raise Refused(f"`{name}` is imported inside `{where}`; at module level it would be needed at import")


def _group(document: Document, loads: list[tuple[ast.Name, Scope]]) -> list[Capture]:
    """One capture for each path that is read.

    `x.shape` is read off the array `x` where an operand shows that `x` is one; else it is a path of its own.
    """
    arrays = {
        ast.unparse(path) for load, _ in loads if _is_operand(document, path := _path(document, load, of_arrays=True))
    }
    found: dict[str, Capture] = {}
    for load, owner in loads:
        read = _path(document, load, of_arrays=True)
        if ast.unparse(read) not in arrays:
            read = _path(document, load, of_arrays=False)
        written = ast.unparse(read)
        capture = found.setdefault(written, Capture(written, owner, load.id))
        if capture.scope is not owner:
            raise Refused(f"`{load.id}` means different things in it")
        capture.reads.append(read)
    return list(found.values())


def _path(document: Document, load: ast.Name, *, of_arrays: bool) -> ast.expr:
    """The path of attributes from a name that is a value of its own: `self.rate` in `self.rate.sum()`. With
    `of_arrays`, it ends before what arrays have."""
    source = document.source
    node: ast.expr = load
    parent = source.parents[node]
    while isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
        if (of_arrays and parent.attr in OF_ARRAYS) or parent.attr == "at":
            break  # `x.at` alone is nothing that a jit takes
        around = source.parents[parent]
        if isinstance(around, ast.Call) and around.func is parent:
            if parent.attr in ARRAY_METHODS and not (node is load and _is_receiver(document, load)):
                break
            raise Refused(f"it calls `{ast.unparse(parent)}`")
        node, parent = parent, around
    return node


def _is_receiver(document: Document, load: ast.Name) -> bool:
    return load.id in ("self", "cls") or document.module.definitions.class_behind(load) is not None


def _is_operand(document: Document, read: ast.expr) -> bool:
    """Whether a read shows that what is read is a number or an array."""
    parent = document.source.parents[read]
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is read else parent.left
        return not isinstance(other, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple)) or isinstance(
            getattr(other, "value", None), (int, float, complex)
        )
    if isinstance(parent, ast.Call) and read in parent.args:
        dotted = document.module.names.dotted(parent.func)
        if not dotted or not dotted <= ARRAY_ARGUMENTS.keys() or any(n.startswith("jax.tree") for n in dotted):
            return False
        position = parent.args.index(read)
        return all(
            position < ARRAY_ARGUMENTS[name] and position not in STATIC_POSITIONS.get(name, ()) for name in dotted
        )
    return False


def _check(document: Document, function: Function, found: list[Capture]) -> None:
    paths = [capture.path for capture in found]
    for capture in found:
        longer = [path for path in paths if path.startswith(capture.path + ".")]
        if longer:
            raise Refused(f"it reads both `{capture.path}` and `{longer[0]}`")
        for binding in capture.bindings:
            if binding.node is function:
                raise Refused("it calls itself")
            if binding.kind in ("def", "class") or (binding.kind == "assign" and isinstance(binding.value, ast.Lambda)):
                raise Refused(f"it uses `{capture.root}`, which is itself made on each call")


def _name(document: Document, function: Function, found: list[Capture]) -> None:
    """Choose the parameters' names: the name itself, or the last part of a path where that is free."""
    inner: set[str] = {parameter.arg for parameter in parameters_of(function)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            inner.add(node.id)
        elif isinstance(node, ast.arg):
            inner.add(node.arg)
        elif isinstance(node, DEFINITIONS):
            inner.add(node.name)
    taken = {capture.path for capture in found}
    for capture in found:
        if "." not in capture.path:
            capture.parameter = capture.path
            continue
        parts = [part.strip("_") or "value" for part in capture.path.split(".")]
        module_names = document.source.module.bindings
        candidates = [parts[-1], "_".join(parts[-2:]), "_".join(parts)]
        free = [c for c in candidates if c not in inner | taken and c not in module_names and c.isidentifier()]
        if not free:
            raise Refused(f"there is no free name for `{capture.path}` as a parameter")
        capture.parameter = free[0]
        taken.add(free[0])
    for capture in found:
        if capture.parameter.startswith("__"):
            raise Refused(f"`{capture.parameter}` means another name outside of the class")


_BRANCHES = (ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.Match, *COMPREHENSIONS, *FUNCTIONS)


def _is_read_always(document: Document, read: ast.expr, function: Function) -> bool:
    """Whether each call of a function that returns has read an expression: no branch stands around it, and none that
    may return stands before it."""
    for child, parent in document.source.ancestors(read):
        if parent is function:
            break
        if isinstance(parent, _BRANCHES):
            first = document.source.fields[child] in ("test", "iter", "first iter", "subject")
            first = first or (isinstance(parent, ast.BoolOp) and parent.values[0] is child)
            if not first or isinstance(parent, FUNCTIONS):
                return False
    if isinstance(function, ast.Lambda):
        return True
    position = (read.lineno, read.col_offset)
    return not any(
        isinstance(node, (ast.Return, ast.Raise, ast.Assert)) and (node.lineno, node.col_offset) < position
        for statement in function.body
        if isinstance(statement, _BRANCHES)
        for node in ast.walk(statement)
    )


def read_edits(document: Document, found: list[Capture]) -> list[Edit]:
    """The edits that make the moved code read its new parameters."""
    return [
        Edit(*document.span(read), capture.parameter)
        for capture in found
        if capture.parameter != capture.path
        for read in capture.reads
    ]


def assumptions(document: Document, found: list[Capture], site: ast.AST, *, equinox: bool) -> list[str]:
    """What has to hold of captured values that become arguments, in words; nothing where it is certain."""
    result = []
    for capture in found:
        name = capture.path
        if capture.sometimes and ("." in name or not _is_bound(document, capture, site)):
            result.append(f"`{name}` can be read at every call, also where the function would not need it")
        if equinox:
            if capture.use is not Use.ARRAY:
                result.append(f"`{name}` is a tree of arrays and hashable values, and no array decides control flow")
        elif capture.use is Use.TREE:
            result.append(f"`{name}` holds arrays and numbers only, and none of them decides a shape or control flow")
        elif capture.use is Use.STATIC and not _is_hashable(document, capture):
            _check_hashable(document, capture)
            result.append(f"`{name}` is hashable")
        elif capture.use is Use.CALLED:
            result.append(f"`{name}` is hashable and compares equal from call to call")
    return result


def _is_bound(document: Document, capture: Capture, site: ast.AST) -> bool:
    """Whether a captured name surely has a value where it is passed."""
    if any(binding.kind == "parameter" for binding in capture.bindings):
        return all(binding.kind != "delete" for binding in capture.bindings)
    return len(capture.bindings) == 1 and document.source.binds_always(capture.bindings[0], site)


def _is_hashable(document: Document, capture: Capture) -> bool:
    """Whether a captured value surely is a number, a text or a tuple of them."""
    return "." not in capture.path and all(
        binding.kind == "assign" and binding.value is not None and _gives_number(document, binding.value)
        for binding in capture.bindings
    )


def _check_hashable(document: Document, capture: Capture) -> None:
    """Raises Refused for a value that surely can't be a static argument."""
    values = Values(document.module)
    kind = next((kind for read in capture.reads if (kind := values.unhashable(read)) is not None), None)
    if kind is None and any(is_asked_by_name(document, read) for read in capture.reads):
        kind = "a dict"
    if kind is not None:
        raise Refused(f"`{capture.path}` has to be static, and {kind} can't be hashed")


def is_asked_by_name(document: Document, read: ast.expr) -> bool:
    """Whether a read is for one item of a dict, `config["depth"]`."""
    parent = document.source.parents[read]
    key = parent.slice if isinstance(parent, ast.Subscript) and parent.value is read else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _gives_number(document: Document, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return _gives_number(document, node.operand)
    if isinstance(node, ast.BinOp):
        return _gives_number(document, node.left) and _gives_number(document, node.right)
    if isinstance(node, ast.Tuple):
        return all(_gives_number(document, element) for element in node.elts)
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "ndim")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return document.module.names.dotted(node.func) <= {"len", "int", "float", "bool", "str"} and bool(
            document.module.names.dotted(node.func)
        )
    return False


def changes_between(document: Document, capture: Capture, creation: ast.AST, sites: list[ast.expr]) -> bool:
    """Whether a captured value may differ between the calls of one jitted function: each used to see that of the first
    call, now each passes its own."""
    if len(sites) == 1 and document.source.scopes[sites[0]].function is document.source.scopes[creation].function:
        return False
    if any(_is_assigned_later(document, attribute) for attribute in capture.path.split(".")[1:]):
        return True
    if is_mutated(document.module, document.source.references.get((capture.scope, capture.root), [])):
        return True
    bindings = capture.bindings
    if len(bindings) == 1:
        return False
    reaching = [document.source.reaching_at(node, bindings) for node in (creation, *sites)]
    return any(found != reaching[0] or len(found) != 1 for found in reaching)


def _is_assigned_later(document: Document, attribute: str) -> bool:
    """Whether the file assigns an attribute of this name outside of `__init__`, on whatever object."""
    for node in document.source.attributes.get(attribute, ()):
        around = functions_around(document.source, node)
        if not isinstance(node.ctx, ast.Load) and not (around and getattr(around[0], "name", "") == "__init__"):
            return True
    return False
