"""JIT301 to JIT304: static arguments that raise, fit no parameter, or are traced again each time.

JAX keeps a trace per value of a static argument and finds it by `hash` and `==`. An unhashable value raises; a value
that is another one each time, or is equal to itself only, is traced each time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from flake8_jitcache.facts import known
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import Place, describe_loop, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS
from flake8_jitcache.facts.signatures import Signature, Statics
from flake8_jitcache.findings import Finding
from flake8_jitcache.rules.listing import listed
from flake8_jitcache.rules.values import Values


@dataclass(frozen=True)
class Passed:
    """A static argument at a call: its value, and how to speak of it."""

    value: ast.expr
    name: str


def check(module: Module) -> Iterator[Finding]:
    """The findings of JIT301 to JIT304."""
    values: Values | None = None
    for creation in module.jits.creations:
        statics = module.signatures.statics(creation)
        if statics is None and not creation.maker.is_equinox:
            continue
        values = values or Values(module)
        if creation.maker.is_equinox:
            yield from _fresh_arguments(module, values, creation)
        if statics is None:
            continue
        yield from _misfits(creation, statics)
        yield from _bad_defaults(values, creation, statics)
        for use in module.uses.of(creation):
            if use.kind in ("call", "staged") and use.exact and isinstance(use.node, ast.Call):
                finding = _judge_call(module, values, use.node, list(_passed(use.node, statics, use.bound)))
                if finding is not None:
                    yield finding


# -------------------------------------------------------------------- JIT302


def _misfits(creation: Creation, statics: Statics) -> Iterator[Finding]:
    """Options that fit no parameter. JAX raises for them where the jit is made; `pmap` does not look."""
    signature = statics.signature
    if signature is None or creation.maker.is_pmap or creation.maker.is_equinox:
        return
    takes = len(signature.positional)
    if statics.numbers and not signature.takes_more:
        wrong = [n for n in statics.numbers if not -takes <= n < takes]
        if wrong:
            last = f"the last is {takes - 1}" if takes else "there are none"
            yield _option(
                creation,
                f"`static_argnums` has {_listed(wrong)}, but {_called(signature)} takes {_count(takes)} by position "
                f"({last}), so JAX raises when the jit is made; {_number_remedy(signature)}",
            )
            return
    for name in statics.names or ():
        parameter = signature.named(name)
        if parameter is not None and not parameter.by_keyword:
            yield _option(
                creation,
                f"`static_argnames` has '{name}', which {_called(signature)} takes by position only, so JAX raises "
                f"when the jit is made; use `static_argnums={signature.positional.index(parameter)}`",
            )
            return
        if parameter is None and (name in signature.variadic or not signature.takes_keywords):
            names = ", ".join(f"`{p.name}`" for p in signature.parameters if p.by_keyword) or "none by keyword"
            yield _option(
                creation,
                f"`static_argnames` has '{name}', but {_called(signature)} has no parameter of that name, so JAX "
                f"raises when the jit is made; its parameters are {names}",
            )
            return


def _number_remedy(signature: Signature) -> str:
    by_keyword = [p.name for p in signature.parameters if not p.by_position]
    if by_keyword:
        return f"a keyword-only parameter needs `static_argnames='{by_keyword[0]}'`"
    return "count from 0, or use `static_argnames`"


# -------------------------------------------------------------------- JIT301


def _bad_defaults(values: Values, creation: Creation, statics: Statics) -> Iterator[Finding]:
    """Static parameters whose default is unhashable: no error while it is left out, one when it is passed."""
    signature = statics.signature
    if signature is None:
        return
    for number, parameter in enumerate(signature.parameters):
        if parameter.default is None:
            continue
        static = (parameter.by_position and number in statics.positions) or parameter.name in statics.keywords
        kind = values.unhashable(parameter.default) if static else None
        if kind is not None:
            yield _option(
                creation,
                f"the static parameter `{parameter.name}` of {_called(signature)} has {kind} as its default, which is "
                f"not hashable: a call that leaves it out works, one that passes such a value raises; {_hashable(kind)}",
                "JIT301",
            )
            return


def _hashable(kind: str) -> str:
    if "list" in kind:
        return "use a tuple"
    if "dict" in kind:
        return "use a tuple of pairs or a frozen dataclass"
    if "set" in kind:
        return "use a frozenset"
    if "array" in kind:
        return "pass the array as an argument that is not static"
    return "use a hashable value, such as a tuple or a frozen dataclass"


# -------------------------------------------------------------------- calls


def _passed(call: ast.Call, statics: Statics, bound: bool) -> Iterator[Passed]:
    """The static arguments of a call."""
    positional = () if statics.signature is None else statics.signature.positional
    if bound and 0 in statics.positions and isinstance(call.func, ast.Attribute):
        yield Passed(call.func.value, f"`{positional[0].name}`" if positional else "number 0")
    for number, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            break
        position = number + bound
        if position in statics.positions:
            named = position < len(positional)
            yield Passed(argument, f"`{positional[position].name}`" if named else f"number {position}")
    for keyword in call.keywords:
        if keyword.arg in statics.keywords:
            yield Passed(keyword.value, f"`{keyword.arg}`")


def fresh_argument(module: Module, values: Values, call: ast.Call) -> ast.expr | None:
    """A function made anew that a call passes by itself: to `equinox.filter_jit`, which takes all that is no array as
    static."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        made = values.fresh(argument)
        node = None if made is None else made.node
        if node is None or place_of(module.source, node) == Place(None, None):
            continue  # made once, at module level
        if isinstance(node, (ast.Lambda, *DEFINITIONS)) or (
            isinstance(node, ast.Call) and module.names.dotted(node.func) & known.PARTIALS
        ):
            return argument
    return None


def _fresh_arguments(module: Module, values: Values, creation: Creation) -> Iterator[Finding]:
    for use in module.uses.of(creation):
        call = use.node
        if use.kind != "call" or not use.exact or not isinstance(call, ast.Call) or module.runs_for_free(call):
            continue
        argument = fresh_argument(module, values, call)
        if argument is not None:
            text = _is_fresh(module, values, call, Passed(argument, f"`{ast.unparse(argument)[:40]}`"))
            if text is not None:
                yield Finding.at(call, "JIT304", text)


def _is_meant(module: Module, call: ast.AST) -> bool:
    """Whether a call stands in a block, or in a function handed to a call, that expects an exception."""
    for child, parent in module.source.ancestors(call):
        expecting: list[ast.expr] = []
        if isinstance(parent, (ast.With, ast.AsyncWith)) and module.source.fields[child] == "body":
            expecting = [item.context_expr for item in parent.items]
        elif isinstance(parent, ast.Call):
            expecting = [parent]
        for expression in expecting:
            function = expression.func if isinstance(expression, ast.Call) else None
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name == "raises" or name.startswith(("assertRaises", "assert_raises")):
                return True
    return False


def _judge_call(module: Module, values: Values, call: ast.Call, arguments: list[Passed]) -> Finding | None:
    """The first fault of a call's static arguments, in the order of the codes."""
    for argument in arguments:
        kind = values.unhashable(argument.value)
        if kind is not None and not _is_meant(module, call):
            text = f"{kind} is passed as the static argument {argument.name}, which has to be hashable: JAX raises"
            return Finding.at(call, "JIT301", f"{text}; {_hashable(kind)}")
    if not arguments or module.runs_for_free(call):
        return None
    changing = [(a, why) for a in arguments if (why := _changes_in_loop(module, call, a)) is not None]
    fresh = [(a, why) for a in arguments if (why := _is_fresh(module, values, call, a)) is not None]
    for code, found in (("JIT303", changing), ("JIT304", fresh)):
        if found:
            return Finding.at(call, code, found[0][1] + _others([argument for argument, _ in found]))
    return None


def _others(arguments: list[Passed]) -> str:
    """The names of further arguments of which the same is true."""
    names = [argument.name.strip("`") for argument in arguments[1:]]
    return f"; the same holds for {listed(names)}" if names else ""


def _changes_in_loop(module: Module, call: ast.Call, argument: Passed) -> str | None:
    iterations = module.iterations
    limit = module.options.static_loop_limit
    for variable in iterations.changing(argument.value, call):
        if iterations.is_few(variable, limit):
            continue
        count = iterations.count(variable)
        times = f", {count} in all" if count is not None else ""
        return (
            f"the static argument {argument.name} changes with `{variable.name}` on each iteration of "
            f"{describe_loop(variable.loop)}, so JAX traces and compiles for each new value{times}; make it a traced "
            "argument where the function allows it, or move the loop into the jitted function (`lax.fori_loop`, "
            "`lax.scan`)"
        )
    return None


def _is_fresh(module: Module, values: Values, call: ast.Call, argument: Passed) -> str | None:
    made = values.fresh(argument.value)
    if made is None:
        return None
    origin = place_of(module.source, made.node)
    here = place_of(module.source, call)
    if origin.function is not here.function:
        return None
    if here.loop is not None and origin.loop is here.loop:
        occasion = f"on each iteration of {describe_loop(here.loop)}"
    elif here.function is not None and not module.frequency.runs_once(here.function):
        function = here.function
        occasion = f"on each call of `{function.name}`" if isinstance(function, DEFINITIONS) else "on each call"
    else:
        return None
    return (
        f"{made.what} is made anew {occasion} and passed as the static argument {argument.name}, and it is equal to "
        f"itself only, so JAX traces and compiles again each time; {made.remedy}"
    )


# -------------------------------------------------------------------- words


def _option(creation: Creation, text: str, code: str = "JIT302") -> Finding:
    return Finding.at(creation.node, code, text)


def _called(signature: Signature) -> str:
    function = signature.function
    return f"`{function.name}`" if isinstance(function, DEFINITIONS) else "the lambda"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _count(number: int) -> str:
    return f"{number or 'no'} parameter{'' if number == 1 else 's'}"
