"""The options of a jit: which parameters are static, which options can move, and how the jit is written above a `def`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.scopes import Function
from flake8_jitcache.fix.captures import Capture
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.stable_names import is_constant

# Options that say nothing about the parameters that a function has.
_FREE = frozenset({"keep_unused", "inline", "backend", "compiler_options", "static_argnames", "static_argnums"})
_TARGETS = frozenset({"fun", "f", "fn", "func"})
_KNOWN = frozenset({"jax.jit", "jax.pjit", "jax.api.jit", "jax.experimental.pjit.pjit"})
# The options that older and newer JAX take by position, behind the function.
_BY_POSITION = (
    (frozenset({"jax.pmap"}), ("axis_name",)),
    (_KNOWN, ("in_shardings", "out_shardings", "static_argnums", "static_argnames", "donate_argnums")),
)


def options_of(creation: Creation) -> list[ast.keyword]:
    """The keyword options of a jit, those bound by a partial first. Raises Refused for what can't be read."""
    given = list(creation.maker.keywords)
    if isinstance(creation.node, ast.Call) and creation.definition is None:
        given += own_options(creation, creation.node)
    return given


def own_options(creation: Creation, call: ast.Call) -> list[ast.keyword]:
    """The options that a call of a jit gives itself, those by position under their names. Raises Refused."""
    names = next((names for makers, names in _BY_POSITION if creation.maker.dotted <= makers), ())
    if len(call.args) - 1 > len(names) or any(isinstance(argument, ast.Starred) for argument in call.args):
        raise Refused("the jit gets options by position")
    by_position = [ast.keyword(arg=name, value=value) for name, value in zip(names, call.args[1:], strict=False)]
    return by_position + [keyword for keyword in call.keywords if keyword.arg not in _TARGETS]


def option_of(creation: Creation, name: str) -> ast.expr | None:
    """The value of an option, by name or by position; the outermost one given."""
    return next((option.value for option in reversed(options_of(creation)) if option.arg == name), None)


def check_options(document: Document, creation: Creation) -> None:
    """Options are evaluated once at module level: they have to be the same each time. Raises Refused."""
    for keyword in options_of(creation):
        if keyword.arg is None:
            raise Refused("the jit gets options through `**`")
        for node in ast.walk(keyword.value):
            if isinstance(node, (ast.Call, ast.Lambda)):
                raise Refused(f"the option `{keyword.arg}` is made on each call")
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                owner = document.owner(node)
                if owner is not None and owner is not document.source.module:
                    raise Refused(f"the option `{keyword.arg}` reads the local `{node.id}`")
                if owner is not None and not is_constant(document.module, node.id):
                    raise Refused(f"the option `{keyword.arg}` reads the global `{node.id}`, which changes")


def check_room(creation: Creation, found: list[Capture]) -> list[str]:
    """Whether a jit can take more parameters: returns what that assumes, raises Refused where it can't."""
    maker = creation.maker
    names = " and ".join(f"`{capture.path}`" for capture in found)
    if maker.is_pmap:
        raise Refused(f"it captures {names}, and `pmap` would split an argument along its first axis")
    for keyword in options_of(creation):
        harmless = keyword.arg == "donate" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "none"
        if keyword.arg in _FREE or harmless:
            continue
        if keyword.arg in ("donate_argnums", "donate_argnames", "donate"):
            raise Refused(f"it captures {names}: with `{keyword.arg}`, an array could be donated and passed as well")
        raise Refused(f"it captures {names}, and `{keyword.arg}` fits the parameters that it has")
    if maker.is_nnx and any(capture.is_static for capture in found):
        raise Refused(f"it captures {names}, which `nnx.jit` can't take as arguments")
    if not maker.dotted <= _KNOWN and not (maker.is_equinox or maker.is_nnx):
        if any(capture.is_static for capture in found):
            raise Refused(f"it captures {names}, and which arguments of `{maker.name}` can be static is not known")
        return [f"`{maker.name}` traces its arguments as `jax.jit` does"]
    return []


def static_parameters(creation: Creation, function: Function) -> frozenset[str]:
    """The parameters of the jitted function that its jit does not trace. Raises Refused where that can't be read."""
    if creation.maker.is_equinox:
        return frozenset()
    positional = [p.arg for p in (*function.args.posonlyargs, *function.args.args)]
    found: set[str] = set()
    for option in ("static_argnums", "static_argnames", "static_broadcasted_argnums"):
        value = option_of(creation, option)
        if value is None:
            continue
        try:
            read = ast.literal_eval(value)
        except ValueError:
            raise Refused(f"`{option}` is no literal") from None
        for item in read if isinstance(read, (tuple, list)) else [read]:
            if isinstance(item, str):
                found.add(item)
            elif isinstance(item, int) and 0 <= item < len(positional):
                found.add(positional[item])
            elif item is not None:
                raise Refused(f"`{option}` counts from the end, or fits no parameter")
    return frozenset(found)


@dataclass
class Decorator:
    """How a jit is written above a function: the text (None: the function keeps its own decorators), edits of those,
    the names it evaluates, and an import it needs."""

    text: str | None
    edits: list[Edit] = field(default_factory=list)
    needed: list[ast.Name] = field(default_factory=list)
    imports: list[Edit] = field(default_factory=list)


def decorator_for(document: Document, creation: Creation, found: list[Capture]) -> Decorator:
    """Write the jit of a creation as a decorator, with the captured values that are static among its static ones."""
    static = [] if creation.maker.is_equinox else [capture.parameter for capture in found if capture.is_static]
    if creation.definition is not None:
        return _own_decorator(document, creation, static)
    call = creation.node
    assert isinstance(call, ast.Call)
    written = Decorator(None)
    written.needed += document.names_in(call.func)
    options = []
    for keyword in own_options(creation, call):
        written.needed += document.names_in(keyword.value)
        if keyword.arg == "static_argnames" and static:
            options.append(f"static_argnames={_with_names(keyword.value, static)}")
        else:
            options.append(f"{keyword.arg}={document.segment(keyword.value)}")
    if static and not any(option.startswith("static_argnames=") for option in options):
        _check_no_other_static(creation)
        options.append(f"static_argnames={names_text(static)}")
    function = document.segment(call.func)
    if not options:
        written.text = function
        return written
    partial, written.imports = _of_functools(document, "functools.partial")
    written.text = f"{partial}({', '.join([function, *options])})"
    return written


def _own_decorator(document: Document, creation: Creation, static: list[str]) -> Decorator:
    written = Decorator(None)
    if not static:
        return written
    node = creation.node
    if not isinstance(node, ast.Call):
        _check_no_other_static(creation)
        partial, written.imports = _of_functools(document, "functools.partial")
        text = f"{partial}({document.segment(node)}, static_argnames={names_text(static)})"
        written.edits.append(Edit(*document.span(node), text))
        return written
    for keyword in node.keywords:
        if keyword.arg == "static_argnames":
            written.edits.append(Edit(*document.span(keyword.value), _with_names(keyword.value, static)))
            return written
    _check_no_other_static(creation)
    from flake8_jitcache.fix.calls import add_arguments

    written.edits.append(add_arguments(document, node, f"static_argnames={names_text(static)}"))
    return written


def _check_no_other_static(creation: Creation) -> None:
    """JAX infers names from numbers, and numbers from names, only where one of the two is given."""
    for option in ("static_argnums", "static_argnames"):
        if option_of(creation, option) is not None:
            raise Refused(f"a captured value has to be static, and `{option}` is given already")


def names_text(names: list[str]) -> str:
    """Names as the value of `static_argnames`."""
    return f'"{names[0]}"' if len(names) == 1 else "(" + ", ".join(f'"{name}"' for name in names) + ")"


def _with_names(value: ast.expr, names: list[str]) -> str:
    read = ast.literal_eval(value)
    return names_text([*([read] if isinstance(read, str) else read), *names])


def cache_decorator(document: Document) -> tuple[str, list[Edit]]:
    """How `functools.cache` is written in this file, and the import that it needs."""
    return _of_functools(document, "functools.cache")


def _of_functools(document: Document, dotted: str) -> tuple[str, list[Edit]]:
    known = document.import_of(dotted)
    if known is not None:
        return known, []
    if "functools" in document.identifiers:
        raise Refused("`functools` is something else in this file")
    return dotted, [document.add_import("functools")]


def with_static(creation: Creation, text: str, static: list[str]) -> str:
    """The text of a call that jits, `jax.jit(...)`, with more static parameters."""
    for keyword in options_of(creation):
        if keyword.arg in ("static_argnums", "static_argnames"):
            raise Refused(f"a captured value has to be static, and `{keyword.arg}` is given already")
    if not text.endswith(")"):
        raise Refused("where its options go is not certain")
    return f"{text[:-1].rstrip().rstrip(',')}, static_argnames={names_text(static)})"
