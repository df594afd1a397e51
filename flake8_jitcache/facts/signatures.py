"""What a jitted function takes, and which of its parameters are static.

JAX reads `inspect.signature`, which follows partials, bound methods and what `functools.wraps` leaves behind; so do we,
for functions whose definition is in the file. Where a wrapper may have changed the signature, nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from flake8_jitcache.facts import known
from flake8_jitcache.facts.constants import Unknown, value_of
from flake8_jitcache.facts.definitions import Definitions, method_kind
from flake8_jitcache.facts.jits import Creation, Jits
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.scopes import DEFINITIONS, Function, Source
from flake8_jitcache.facts.targets import returns_of

NUMBERS = ("static_argnums", "static_broadcasted_argnums")
NAMES = "static_argnames"

# Transforms whose result has the signature of what it wraps.
_KEEP_SIGNATURE = known.TRANSFORMS - {
    "jax.vjp", "jax.jvp", "jax.linearize", "jax.linear_transpose", "jax.make_jaxpr", "jax.eval_shape",
    "jax.pure_callback", "jax.custom_gradient", "jax.experimental.checkify.checkify", "jax.numpy.vectorize",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One named parameter; `default` is its default's expression."""

    name: str
    by_position: bool
    by_keyword: bool
    default: ast.expr | None = None


@dataclass(frozen=True)
class Signature:
    """The parameters of a callable, as its jit sees them. `function` is what they belong to."""

    function: Function
    parameters: tuple[Parameter, ...]
    takes_more: bool = False
    takes_keywords: bool = False
    variadic: frozenset[str] = frozenset()

    @property
    def positional(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.by_position)

    def named(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True)
class Statics:
    """The static parameters of a jitted function: what its options say, and what that means for its signature.

    numbers, names: as given (negative numbers too); None where the file does not tell what is given.
    positions, keywords: the arguments that are static when passed so.
    """

    numbers: tuple[int, ...] | None
    names: tuple[str, ...] | None
    positions: frozenset[int]
    keywords: frozenset[str]
    signature: Signature | None


class Signatures:
    """Resolves signatures and static parameters of jitted functions."""

    def __init__(self, source: Source, names: Names, jits: Jits, definitions: Definitions) -> None:
        self._source = source
        self._names = names
        self._jits = jits
        self._definitions = definitions

    def statics(self, creation: Creation) -> Statics | None:
        """The static parameters of a creation; None where it has no option for them."""
        given_numbers = next((o for name in NUMBERS if (o := creation.option(name)) is not None), None)
        given_names = creation.option(NAMES)
        if given_numbers is None and given_names is None:
            return None
        numbers = () if given_numbers is None else self._numbers(given_numbers)
        names = () if given_names is None else self._strings(given_names)
        signature = self.of(creation)
        positions = {n for n in numbers or () if n >= 0}
        keywords = set(names or ())
        if signature is not None:
            takes = signature.positional
            positions |= {len(takes) + n for n in numbers or () if n < 0 <= len(takes) + n}
            if given_names is None:
                keywords |= {takes[n].name for n in positions if n < len(takes) and takes[n].by_keyword}
            elif given_numbers is None:
                positions |= {n for n, p in enumerate(takes) if p.name in keywords}
        return Statics(numbers, names, frozenset(positions), frozenset(keywords), signature)

    def _numbers(self, node: ast.expr) -> tuple[int, ...] | None:
        values = self._values(node)
        if values is None or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            return None
        return tuple(v for v in values if isinstance(v, int))

    def _strings(self, node: ast.expr) -> tuple[str, ...] | None:
        values = self._values(node)
        if values is None or not all(isinstance(v, str) for v in values):
            return None
        return tuple(v for v in values if isinstance(v, str))

    def _values(self, node: ast.expr) -> tuple[object, ...] | None:
        try:
            value = value_of(self._source, node)
        except Unknown:
            return None
        if value is None:
            return ()
        if isinstance(value, (str, int)):
            return (value,)
        return tuple(value) if isinstance(value, Iterable) else None

    # ---------------------------------------------------------------- signatures

    def of(self, creation: Creation) -> Signature | None:
        """The signature of what a creation jits; None where the file does not tell it."""
        if creation.definition is not None:
            decorators = creation.definition.decorator_list
            below = decorators[decorators.index(creation.node) + 1 :]
            return _signature(creation.definition) if all(map(self._keeps, below)) else None
        return self._of_value(creation.target, 0) if isinstance(creation.target, ast.expr) else None

    def _keeps(self, decorator: ast.expr) -> bool:
        """Whether a decorator leaves the signature as it is."""
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = self._names.dotted(node)
        if dotted & known.PARTIALS and isinstance(decorator, ast.Call) and decorator.args:
            return self._keeps(decorator.args[0])
        return (
            bool(dotted and dotted <= _KEEP_SIGNATURE | {"functools.wraps"}) or self._jits.maker(decorator) is not None
        )

    def _of_value(self, node: ast.expr, depth: int) -> Signature | None:
        if depth > 8:
            return None
        if isinstance(node, ast.Lambda):
            return _signature(node)
        if isinstance(node, ast.NamedExpr):
            return self._of_value(node.value, depth + 1)
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._of_method(node)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        return None

    def _of_name(self, node: ast.Name, depth: int) -> Signature | None:
        bindings = self._source.reaching(node)
        if len(bindings) != 1:
            return None
        binding = bindings[0]
        if binding.kind == "assign" and binding.value is not None and binding.index is None:
            return self._of_value(binding.value, depth + 1)
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            return self._of_definition(binding.node)
        return None

    def _of_definition(self, function: Function) -> Signature | None:
        if isinstance(function, DEFINITIONS) and not all(map(self._keeps, function.decorator_list)):
            return None
        return _signature(function)

    def _of_method(self, node: ast.Attribute) -> Signature | None:
        method = self._definitions.method_of(node)
        if method is None:
            return None
        kind = method_kind(method, self._names)
        if kind == "property":
            return None
        plain = [d for d in method.decorator_list if not self._names.dotted(d) & {"staticmethod", "classmethod"}]
        if not all(map(self._keeps, plain)):
            return None
        signature = _signature(method)
        bound = kind == "class" or (kind == "instance" and not self._definitions.is_class(node.value))
        return _without_first(signature) if bound else signature

    def _of_call(self, node: ast.Call, depth: int) -> Signature | None:
        dotted = self._names.dotted(node.func)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return None
        if dotted & known.PARTIALS and node.args:
            inner = self._of_value(node.args[0], depth + 1)
            return inner and _partial(inner, len(node.args) - 1, [k.arg for k in node.keywords if k.arg])
        if node.args and ((dotted and dotted <= _KEEP_SIGNATURE) or self._jits.maker(node.func) is not None):
            return self._of_value(node.args[0], depth + 1)
        functions = self._definitions.functions(node.func)
        if len(functions) == 1 and not getattr(functions[0], "decorator_list", ()):
            function = functions[0]
            returned = [function.body] if isinstance(function, ast.Lambda) else list(returns_of(function))
            if len(returned) == 1:
                return self._of_value(returned[0], depth + 1)
        return None


def _signature(function: Function) -> Signature:
    a = function.args
    positional = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults))
    parameters = [
        Parameter(p.arg, True, number >= len(a.posonlyargs), default)
        for number, (p, default) in enumerate(zip(positional, [*defaults, *a.defaults], strict=True))
    ]
    parameters += [Parameter(p.arg, False, True, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    variadic = frozenset(p.arg for p in (a.vararg, a.kwarg) if p is not None)
    return Signature(function, tuple(parameters), a.vararg is not None, a.kwarg is not None, variadic)


def _without_first(signature: Signature) -> Signature:
    first = signature.positional[:1]
    return replace(signature, parameters=tuple(p for p in signature.parameters if p not in first))


def _partial(signature: Signature, bound: int, keywords: list[str]) -> Signature:
    """What is left when some arguments are bound: by position they are gone, by keyword they and all after them can
    only be passed by keyword."""
    left = [p for number, p in enumerate(signature.parameters) if not p.by_position or number >= bound]
    first = next((number for number, p in enumerate(left) if p.name in keywords), len(left))
    return replace(
        signature,
        parameters=tuple(replace(p, by_position=False) if number >= first else p for number, p in enumerate(left)),
        takes_more=signature.takes_more and first == len(left),
    )
