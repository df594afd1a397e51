"""JIT106: `functools.cache` on a factory of jitted functions, so that one product serves all calls with equal arguments."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.places import class_of
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition
from flake8_jitcache.facts.targets import returns_of
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import cache_decorator
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.rules.values import Values


def plan(task: Task) -> Fix:
    """Put a cache on the factory of a finding."""
    document, factory = task.document, task.lifetime.factory
    if not isinstance(factory, ast.FunctionDef):
        raise Refused("the factory is no plain function")
    if class_of(document.source, factory) is not None:
        raise Refused(f"a cache on the method `{factory.name}` would keep each object alive")
    if document.source.scopes[factory] is not document.source.module:
        raise Refused(f"`{factory.name}` is itself made on each call, and its cache would be, too")
    if factory.decorator_list:
        raise Refused(f"`{factory.name}` has a decorator already")
    if len(document.source.module.bindings[factory.name]) != 1:
        raise Refused(f"`{factory.name}` is bound in more than one place")
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(factory)):
        raise Refused(f"`{factory.name}` is a generator")
    around = effects(document.module, [factory])
    if around.changing:
        raise Refused(f"`{factory.name}` reads the global `{min(around.changing)}`, which changes")
    assumed = [*around.assumptions, *_assumptions(document, factory)]
    if not all(_is_jitted(document, value) for value in returns_of(factory)):
        assumed.append(f"nobody changes what `{factory.name}` returns")
    cache, edits = cache_decorator(document)
    at = document.positions.line_start(factory.lineno)
    edits.append(Edit(at, at, f"@{cache}{document.newline}"))
    return Fix(edits, assumed, defines=f"a cache on {factory.name}")


def _assumptions(document: Document, factory: Definition) -> list[str]:
    """What a cache assumes of the arguments: nothing where each call in the file passes hashable literals."""
    calls = document.module.definitions.calls_of(factory)
    uses = document.module.definitions.uses(factory)
    if not (factory.args.args or factory.args.posonlyargs or factory.args.kwonlyargs or factory.args.vararg):
        return []
    literals: set[tuple[type, object]] = set()
    unsure: list[str] = []
    values = Values(document.module)
    for call in calls:
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            try:
                read = ast.literal_eval(value)
                hash(read)
                literals.add((type(read), read))
            except (ValueError, TypeError):
                kind = values.unhashable(value)
                if kind is not None:
                    raise Refused(f"`{factory.name}` is called with {kind}, which can't be hashed") from None
                unsure.append(ast.unparse(value))
    if len({value for _, value in literals}) < len(literals):
        raise Refused(f"`{factory.name}` is called with equal literals of different types, which a cache takes as one")
    if len(calls) < len(uses):
        unsure.append(f"what else `{factory.name}` is called with")
    if not unsure:
        return []
    names = " and ".join(one if one.startswith("what") else f"`{one}`" for one in dict.fromkeys(unsure))
    return [f"{names} can be hashed, and only few different values come, each of which `functools.cache` keeps"]


def _is_jitted(document: Document, value: ast.expr) -> bool:
    """Whether a returned value surely is a jitted function, or a tuple of them: nothing that a caller can change."""
    if isinstance(value, ast.Tuple):
        return all(_is_jitted(document, element) for element in value.elts)
    jits = document.module.jits
    if isinstance(value, ast.Call):
        return jits.maker(value.func) is not None and bool(value.args)
    if not isinstance(value, ast.Name):
        return False
    return all(
        (binding.kind == "assign" and isinstance(binding.value, ast.Call) and _is_jitted(document, binding.value))
        or (
            isinstance(binding.node, DEFINITIONS)
            and any(jits.maker(d) is not None for d in binding.node.decorator_list)
        )
        for binding in document.source.reaching(value)
    )
