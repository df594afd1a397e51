"""JIT101, JIT102, JIT103, JIT105 and JIT107 where options or static values come from locals: a maker at module level under
`functools.cache`, called with them.

    @functools.cache
    def _make_step(sharding):
        return jax.jit(lambda v: v * 2, out_shardings=sharding)

The code that jits moves there as it is. Its locals become the key of the cache: each has to be hashable, and to stay the
same while it is kept.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import dataclass, field, replace

from flake8_jitcache.facts import known
from flake8_jitcache.facts.places import class_of, functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Binding, Definition, Scope
from flake8_jitcache.fix import naming, wrap
from flake8_jitcache.fix.calls import check_sites, sites_of_definition, sites_without_arguments
from flake8_jitcache.fix.captures import is_asked_by_name
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, splice
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Planner, Task
from flake8_jitcache.fix.jit_options import cache_decorator, options_of
from flake8_jitcache.fix.moving import definition_lines, reindent
from flake8_jitcache.fix.operands import Use, Uses
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.stable_names import is_constant, is_mutated
from flake8_jitcache.rules.values import Values

# What makes values that can be hashed and are equal wherever they are made alike.
_HASHABLE = frozenset(
    {f"jax.sharding.{name}" for name in "Mesh NamedSharding PartitionSpec SingleDeviceSharding AbstractMesh".split()}
    | {"jax.NamedSharding", "jax.P", "jax.make_mesh", "jax.sharding.Sharding", "jax.Mesh", "jax.Sharding"}
    | {
        "jax.experimental.pjit.PartitionSpec",
        "jax.experimental.maps.Mesh",
        "jax.device_count",
        "jax.local_device_count",
    }
)
# What is the same for as long as the program runs.
_SAME = frozenset(
    {"jax.devices", "jax.local_devices", "jax.device_count", "jax.local_device_count", "jax.process_index"}
)
_TEXT = frozenset({"str"})
_NUMBERS = frozenset({"len", "int"})


@dataclass
class Key:
    """A value that the maker takes: the expression that is passed, the parameter's name, and where the moved code reads
    it. of_code: whether traced code reads it, or a function that is transformed; not the jit's options alone."""

    value: ast.expr
    parameter: str
    reads: list[ast.expr] = field(default_factory=list)
    of_code: bool = False


def or_maker(plan: Planner) -> Planner:
    """A planner that makes what another refuses, or does on an assumption, with a maker, where that is safe or the only
    way."""

    def planned(task: Task) -> Fix:
        first, second = (replace(task, taken=set(task.taken)) for _ in range(2))
        fix: Fix | None = None
        refusal = Refused()
        try:
            fix = plan(first)
        except Refused as refused:
            refusal = refused
        chosen = first
        if fix is None or fix.assumptions:
            with contextlib.suppress(Refused):
                made = plan_maker(second)
                if fix is None or not made.assumptions:
                    fix, chosen = made, second
        if fix is None:
            raise refusal
        task.taken |= chosen.taken
        return fix

    return planned


def plan_maker(task: Task) -> Fix:
    """Put the code of a finding that jits into a cached maker."""
    document, creation = task.document, task.lifetime.creation
    if task.lifetime.factory is not None or creation.target is None:
        raise Refused("what is jitted can't be seen")
    definition = creation.definition
    code: ast.expr | Definition = creation.node if definition is None else definition
    if definition is not None:
        sites = sites_of_definition(document, definition)
        if isinstance(definition, ast.AsyncFunctionDef):
            raise Refused("it is an async function")
    else:
        sites = sites_without_arguments(document, creation.node)
    check_sites(document, sites)
    _check_text(document, code)
    functions = [node for node in ast.walk(code) if isinstance(node, FUNCTIONS)]
    around = effects(document.module, functions)
    if around.changing:
        raise Refused(f"it reads the global `{min(around.changing)}`, which changes")
    assumed = list(around.assumptions)
    if task.finding.code in ("JIT102", "JIT105") and isinstance(creation.node, ast.Call):
        assumed += wrap.check_seen(document, creation.node)
    keys = _keys(task, code)
    unsure = [key for key in keys if not _is_certain(document, key.value)]
    if unsure:
        names = " and ".join(f"`{ast.unparse(key.value)}`" for key in unsure)
        assumed.append(
            f"{names} can be hashed and does not change, equal values are of one type, and only few different ones come, "
            "each of which `functools.cache` keeps"
        )
    cache, imports = cache_decorator(document)
    names_ = [definition.name] if definition is not None else naming.candidates(document, creation.node, None)
    name = naming.choose(document, names_, task.taken, prefix="make_")
    moved = [Edit(*document.span(read), key.parameter) for key in keys for read in key.reads]
    one, newline = document.indent, document.newline
    given = ", ".join(document.segment(key.value) for key in keys)
    if definition is None:
        start, end = document.span(code)
        text = splice(document.text[start:end], moved, start)
        body = [f"{one}return {reindent(document, text, code.lineno, document.indentation(code.lineno), one)}"]
        edits = [Edit(start, end, f"{name}({given})")]
    else:
        start, end = definition_lines(document, definition)
        text = splice(document.text[start:end], moved, start)
        first, old = document.text.count("\n", 0, start) + 1, document.indentation(definition.lineno)
        lines = reindent(document, text, first, old, one, whole=True).rstrip("\r\n")
        body = [lines, "", f"{one}return {definition.name}"]
        edits = [Edit(start, end, f"{old}{definition.name} = {name}({given}){newline}")]
    text = newline.join([f"@{cache}", f"def {name}({', '.join(key.parameter for key in keys)}):", *body])
    gap = document.gap_for(document.top_statement(creation.node), [])
    return Fix([gap.insert(text), *imports, *edits], assumed)


def _check_text(document: Document, code: ast.AST) -> None:
    """Whether code means the same in another function. Raises Refused."""
    in_class = any(class_of(document.source, f) is not None for f in functions_around(document.source, code))
    inside: set[ast.AST] = {n for f in ast.walk(code) if isinstance(f, FUNCTIONS) for n in ast.walk(f) if n is not f}
    for node in ast.walk(code):
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) and node not in inside:
            raise Refused(f"`{ast.unparse(node)}` is evaluated on each call")
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if in_class and ((name.startswith("__") and not name.endswith("__")) or name in ("super", "__class__")):
            raise Refused(f"`{name}` means another name outside of the class")


def _keys(task: Task, code: ast.expr | Definition) -> list[Key]:
    """The values of the function around it that moved code reads, in order. Raises Refused."""
    document, creation = task.document, task.lifetime.creation
    source = document.source
    options = [option for option in options_of(creation) if document.within(option.value, code)]
    if any(option.arg is None for option in options):
        raise Refused("the jit gets options through `**`")
    found: dict[str, Key] = {}
    taken = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(code) if isinstance(node, ast.arg)}
    called: set[ast.AST] = set()
    for option in options:  # what an option calls is called on each call, as it was
        if any(
            isinstance(n, (ast.Call, ast.Lambda)) and not _is_made_alike(document, n) for n in ast.walk(option.value)
        ):
            assert option.arg is not None
            if isinstance(option.value, ast.Lambda):
                raise Refused(f"the option `{option.arg}` is made on each call")
            parameter = next((n for n in (option.arg, f"{option.arg}_value") if n not in taken), "")
            if not parameter:
                raise Refused(f"there is no free name for `{option.arg}` as a parameter")
            found[parameter] = Key(option.value, parameter, [option.value])
            called |= set(ast.walk(option.value))
    in_options = {node for option in options for node in ast.walk(option.value)}
    for node in ast.walk(code):
        if isinstance(node, ast.Call) and node is not creation.node and node not in in_options:
            _check_call(document, node, code)
    names = [n for n in ast.walk(code) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n not in called]
    for name in sorted(names, key=lambda n: (n.lineno, n.col_offset)):
        owner = document.owner(name)
        if owner is None or _is_inside(document, owner, code):
            continue
        if owner is source.module:
            if name in in_options and not is_constant(document.module, name.id):
                raise Refused(f"it is made of the global `{name.id}`, which changes")
            continue
        _check_binding(document, owner, name, code, at_once=name in in_options)
        read: ast.expr = name
        while isinstance(parent := source.parents[read], ast.Attribute) and parent.value is read:
            around = source.parents[parent]
            if isinstance(around, ast.Call) and around.func is parent:
                break
            read = parent
        if (
            isinstance(read, ast.Attribute)
            and name not in in_options
            and read.attr not in ("shape", "ndim", "size", "dtype")
        ):
            raise Refused(f"`{ast.unparse(read)}` may be anything")
        if read is name and (name.id in ("self", "cls")):
            raise Refused(f"a cache would keep `{name.id}` alive")
        key = found.setdefault(ast.unparse(read), Key(read, _parameter(read, taken)))
        key.of_code = key.of_code or name not in in_options
        key.reads.append(read)
    values = Values(document.module)
    for key in found.values():
        kind = next((kind for read in key.reads if (kind := values.unhashable(read)) is not None), None)
        if kind is not None:
            raise Refused(f"`{ast.unparse(key.value)}` is {kind}, which can't be hashed")
        if any(is_asked_by_name(document, read) for read in key.reads):
            raise Refused(f"`{ast.unparse(key.value)}` is a dict, which can't be hashed")
        if key.of_code and not _is_certain(document, key.value):
            _check_static(document, key, code)
    parameters = [key.parameter for key in found.values()]
    if len(set(parameters)) < len(parameters):
        raise Refused("two of the values that it reads have one name")
    return [*found.values()]


def _check_binding(document: Document, owner: Scope, name: ast.Name, code: ast.AST, *, at_once: bool) -> None:
    """Whether a local has the value that the code reads where the maker is called: always what is read `at_once`; what
    traced code reads later, where it is bound once and before. Raises Refused."""
    bindings = owner.bindings[name.id]
    for binding in bindings:
        if binding.kind == "import":
            raise document.known_inside(owner, name.id)
        if binding.node is code:
            raise Refused("it calls itself")
        if binding.kind in ("def", "class") or isinstance(binding.value, ast.Lambda):
            raise Refused(f"it uses `{name.id}`, which is itself made on each call")
    if not at_once and len(bindings) != 1:
        raise Refused(f"`{name.id}` is bound in more than one place")
    if not at_once and not _is_bound(document, bindings[0], code):
        raise Refused(f"`{name.id}` is not surely bound where it is made")
    if is_mutated(document.module, document.source.references.get((owner, name.id), [])):
        raise Refused(f"`{name.id}` is changed in this file")


def _is_bound(document: Document, binding: Binding, code: ast.AST) -> bool:
    if binding.kind == "parameter" or document.source.scopes[code].function is not binding.scope.function:
        return binding.kind == "parameter"
    return document.source.binds_always(binding, code)


def _is_inside(document: Document, scope: Scope, code: ast.AST) -> bool:
    """Whether a scope is one of the moved code's own."""
    return scope.node is code or any(scope.node is node for node in ast.walk(code))


def _check_call(document: Document, call: ast.Call, code: ast.AST) -> None:
    """Whether a call, evaluated once per key and not on each call, only makes functions. Raises Refused."""
    for child, parent in document.source.ancestors(call):
        if isinstance(parent, FUNCTIONS) and child is not parent:
            fields = [*parent.body] if isinstance(parent, DEFINITIONS) else [parent.body]
            if child in fields:
                return  # runs where it is traced
        if parent is code:
            break
    dotted = document.module.names.dotted(call.func)
    if dotted and dotted <= known.TRANSFORMS | known.PARTIALS:
        return
    if document.module.jits.maker(call.func) is not None or document.module.jits.maker(call) is not None:
        return
    raise Refused(f"`{ast.unparse(call.func)}(...)` is evaluated on each call, and would be once")


def _is_made_alike(document: Document, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _dotted_is(document, node.func, _HASHABLE | _SAME)


def _dotted_is(document: Document, node: ast.expr, names: frozenset[str]) -> bool:
    dotted = document.module.names.dotted(node)
    return bool(dotted) and dotted <= names


def _check_static(document: Document, key: Key, code: ast.AST) -> None:
    """What traced code reads can be a key only where it surely is no array. Raises Refused."""
    for read in key.reads:
        around = functions_around(document.source, read)
        function = around[0] if around and document.within(around[0], code) else None
        if function is None:
            raise Refused(f"it is made of `{ast.unparse(read)}`, which may be an array")
        if Uses(document.module).of([read], function, frozenset()) < Use.STATIC:
            raise Refused(f"`{ast.unparse(read)}` may be an array, which can't be hashed")


def _parameter(read: ast.expr, taken: set[str]) -> str:
    if isinstance(read, ast.Name):
        return read.id
    parts = [part.strip("_") for part in ast.unparse(read).split(".")]
    for name in (parts[-1], "_".join(parts[-2:]), "_".join(parts)):
        if name and name.isidentifier() and name not in taken:
            return name
    raise Refused(f"there is no free name for `{ast.unparse(read)}` as a parameter")


def _is_certain(document: Document, value: ast.expr) -> bool:
    """Whether a value surely is a sharding, a mesh, a text, a whole number that Python counts, or a tuple of them."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) or value.value is None
    if isinstance(value, ast.Tuple):
        return all(_is_certain(document, element) for element in value.elts)
    if isinstance(value, ast.Attribute):
        return value.attr == "ndim"
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.Call):
        return _dotted_is(document, value.func, _HASHABLE | _NUMBERS)
    if not isinstance(value, ast.Name):
        return False
    owner = document.owner(value)
    if owner is None:
        return False
    return all(_gives_certain(document, owner, binding) for binding in owner.bindings[value.id])


def _gives_certain(document: Document, owner: Scope, binding: Binding) -> bool:
    if binding.kind == "parameter" and isinstance(binding.node, ast.arg) and binding.node.annotation is not None:
        return _dotted_is(document, binding.node.annotation, _HASHABLE | _TEXT)
    if binding.kind in ("def", "class", "import"):
        return owner is document.source.module
    return binding.kind == "assign" and binding.value is not None and _is_certain(document, binding.value)
