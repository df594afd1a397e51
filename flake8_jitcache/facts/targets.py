"""Question 2: what is jitted? A fresh object on each evaluation, a stable one, or unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from flake8_jitcache.facts import known
from flake8_jitcache.facts.caches import Caches
from flake8_jitcache.facts.circles import Answers
from flake8_jitcache.facts.definitions import Definitions, last_part, method_kind
from flake8_jitcache.facts.jits import Creation, Jits, Maker
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import Place, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, Binding, Function, Source

Kind = Literal["lambda", "partial", "def", "method", "transform", "stable", "hits", "unknown"]

CODE_OF: dict[Kind, str] = {
    "lambda": "JIT101",
    "partial": "JIT102",
    "def": "JIT103",
    "method": "JIT104",
    "transform": "JIT105",
    "stable": "JIT107",
}


@dataclass(frozen=True)
class Target:
    """What a jit is made of.

    kind: which kind of object; `hits` is one whose identity is new but which the jit finds in its cache all the same.
    origin: the node whose evaluation makes the object; None where it is made once per import, or unknown.
    function: the function of this file that runs, where it can be seen.
    parameter: for an unknown target that is a parameter, its binding.
    again: what happens each time for a fresh one: traced (and compiled), or only compiled.
    made_by: for a transform, its name.
    """

    kind: Kind
    origin: ast.AST | None = None
    function: Function | None = None
    parameter: Binding | None = None
    again: Literal["traces", "compiles"] = "traces"
    made_by: str = ""

    @property
    def is_fresh(self) -> bool:
        return self.kind in ("lambda", "partial", "def", "method", "transform")


UNKNOWN = Target("unknown")
STABLE = Target("stable")
HITS = Target("hits")

# Of several objects that a name may be, the one that costs most decides.
_ORDER: dict[Kind, int] = {
    "transform": 0, "method": 1, "def": 2, "partial": 3, "lambda": 4, "unknown": 5, "stable": 6, "hits": 7,
}  # fmt: skip


class Targets:
    """Classifies what jits are made of."""

    def __init__(self, source: Source, names: Names, jits: Jits, definitions: Definitions, caches: Caches) -> None:
        self._source = source
        self._names = names
        self._jits = jits
        self._definitions = definitions
        self._caches = caches
        self._answers: Answers[Target] = Answers(self._classify, UNKNOWN)
        self._stored: dict[str, set[ast.ClassDef]] = {}

    def of(self, creation: Creation) -> Target:
        """The target of a creation, as its jit sees it."""
        if creation.target is None:
            return UNKNOWN
        if creation.definition is not None:
            found = Target("def", creation.definition, creation.definition)
        else:
            assert isinstance(creation.target, ast.expr)
            found = self.classify(creation.target)
        return self._as_seen_by(creation.maker, creation, found)

    def _as_seen_by(self, maker: Maker, creation: Creation, target: Target) -> Target:
        if maker.wraps_anew and target.kind == "stable" and creation.definition is None:
            return Target("transform", creation.node, target.function, made_by=maker.name)
        if target.kind == "method" and (maker.is_pmap or maker.is_equinox):
            return replace(HITS, function=target.function)
        if maker.is_equinox and isinstance(creation.target, ast.Call) and self._hits_in_equinox(creation.target):
            return replace(HITS, function=target.function)
        return target

    def _hits_in_equinox(self, call: ast.Call) -> bool:
        """Whether equinox finds a call's result in its cache: it compares modules and pytrees by what is in them."""
        if self._makes_instance(call):
            dotted = self._names.dotted(call.func)
            if "jax.tree_util.Partial" not in dotted:
                return True
        elif not self._names.dotted(call.func) & known.EQUINOX_STABLE:
            return False
        inner = call.args[0] if call.args else None
        if isinstance(inner, ast.Call):
            return self._hits_in_equinox(inner)
        return inner is not None and self.classify(inner).kind in ("stable", "hits", "method")

    def classify(self, node: ast.expr) -> Target:
        """What kind of object an expression gives, and where it is made."""
        return self._answers.of(node)

    def _classify(self, node: ast.AST) -> Target:
        if isinstance(node, ast.Lambda):
            return Target("lambda", node, node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return _costliest([self.classify(node.body), self.classify(node.orelse)])
        if isinstance(node, ast.BoolOp):
            return _costliest([self.classify(value) for value in node.values])
        if isinstance(node, ast.NamedExpr):
            return self.classify(node.value)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        return UNKNOWN

    def _item(self, node: ast.Subscript) -> Target:
        """An item of a table of functions that the file writes out."""
        tables: list[ast.expr | None] = [node.value]
        if isinstance(node.value, ast.Name):
            tables = [b.value if b.kind == "assign" else None for b in self._source.reaching(node.value)]
        items: list[ast.expr] = []
        for table in tables:
            if isinstance(table, ast.Dict):
                items += table.values
            elif isinstance(table, (ast.List, ast.Tuple)):
                items += table.elts
            else:
                return UNKNOWN
        found = [self._settled(self.classify(item)) for item in items]
        return _costliest(found) if found and all(one.is_fresh or one.kind == "stable" for one in found) else UNKNOWN

    # ---------------------------------------------------------------- names

    def _name(self, node: ast.Name) -> Target:
        if self._source.lookup(self._source.scopes[node], node.id) is None:
            return STABLE if self._names.dotted(node) else UNKNOWN
        return _costliest([self._binding(b, node) for b in self._source.reaching(node)])

    def _binding(self, binding: Binding, load: ast.Name) -> Target:
        if binding.kind == "import":
            return STABLE
        if binding.kind == "class":
            return Target("stable", binding.node) if binding.scope.function is not None else STABLE
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            return self._settled(Target("def", binding.node, binding.node))
        if binding.kind == "parameter":
            return Target("unknown", parameter=binding)
        if binding.kind == "assign" and binding.value is not None:
            return self._settled(self.classify(binding.value))
        return UNKNOWN

    def _settled(self, target: Target) -> Target:
        """A named object; what is made at module or class level, outside loops, is made once."""
        if target.is_fresh and target.origin is not None and place_of(self._source, target.origin) == Place(None, None):
            return Target("stable", None, target.function)
        return target

    # ---------------------------------------------------------------- attributes

    def _attribute(self, node: ast.Attribute) -> Target:
        if self._names.dotted(node):
            return STABLE
        receiver = node.value
        owner = self._definitions.class_behind(receiver)
        is_class = isinstance(receiver, ast.Name) and any(b.kind == "class" for b in self._source.reaching(receiver))
        if owner is not None:
            method = self._definitions.method(owner, node.attr)
            if method is not None:
                kind = method_kind(method, self._names)
                if kind == "property" or self._caches.caches(method):
                    return UNKNOWN
                if any(self._jits.maker(d) for d in method.decorator_list):
                    return Target("unknown", function=method)
                receiver_is_class = is_class or self._is_cls(receiver)
                if kind == "static" or (kind == "instance" and receiver_is_class):
                    return Target("stable", function=method)
                return Target("method", node, method)
            if self._assigned(owner, node.attr) or is_class:
                return UNKNOWN
        if isinstance(receiver, ast.Call):
            if self._names.dotted(receiver.func) & (known.LOOKERS | known.GETTERS):
                return UNKNOWN  # type(self).m
            inner = self.classify(receiver)
            return Target("method", node) if inner.is_fresh else UNKNOWN
        if isinstance(receiver, ast.Name):
            values = [b.value for b in self._source.reaching(receiver) if b.kind == "assign"]
            calls = [v for v in values if isinstance(v, ast.Call) and self._is_made(v)]
            if calls and len(calls) == len(values):
                if all(known.gives_fields(self._names.dotted(call.func)) for call in calls):
                    return _costliest([self._settled(self.classify(call)) for call in calls])
                return Target("method", node)
        return UNKNOWN

    def _is_made(self, call: ast.Call) -> bool:
        return self.classify(call).is_fresh

    def _is_cls(self, receiver: ast.expr) -> bool:
        """Whether an expression is the class parameter of a class method."""
        if not isinstance(receiver, ast.Name):
            return False
        for binding in self._source.reaching(receiver):
            if binding.kind == "parameter" and isinstance(binding.scope.node, DEFINITIONS):
                return method_kind(binding.scope.node, self._names) == "class"
        return False

    def _assigned(self, owner: ast.ClassDef, attribute: str) -> bool:
        """Whether a class's code assigns an attribute (then what it holds is unknown)."""
        if attribute not in self._stored:
            stores = (n for n in self._source.attributes.get(attribute, ()) if isinstance(n.ctx, ast.Store))
            around = (class_around(self._source, node) for node in stores)
            self._stored[attribute] = {cls for cls in around if cls is not None}
        if owner in self._stored[attribute]:
            return True
        scope = self._source.scope_of_function[owner]
        return attribute in scope.bindings or any(
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id == attribute
            for statement in owner.body
        )

    # ---------------------------------------------------------------- calls

    def _call(self, node: ast.Call) -> Target:
        dotted = self._names.dotted(node.func)
        if dotted & known.PARTIALS:
            function = next(iter(self._definitions.functions(node.args[0])), None) if node.args else None
            return Target("partial", node, function)
        maker = self._jits.maker(node.func)
        if maker is not None and node.args:
            return self._wrapped(node, node.args[0], maker.name, only_compiles=True)
        if dotted & known.TRANSFORMS:
            inner = node.args[0] if node.args else None
            name = min(dotted & known.TRANSFORMS)
            return self._wrapped(node, inner, name, only_compiles=bool(dotted & known.CHECKPOINTS))
        if isinstance(node.func, ast.Call) and node.args:
            # wraps(f)(g) gives g; partial(vmap, in_axes=0)(g) transforms it.
            outer = self._names.dotted(node.func.func)
            if "functools.wraps" in outer:
                return self.classify(node.args[0])
        if dotted & known.SHELLS and node.args:
            return self.classify(node.args[0])
        if dotted & known.GETTERS:
            return UNKNOWN
        if isinstance(node.func, ast.Attribute) and node.func.attr in known.GETTER_METHODS and not dotted:
            return UNKNOWN
        functions = self._definitions.functions(node.func)
        if functions:
            return _costliest([self._returned(f, node) for f in functions])
        name = last_part(min(dotted)) if dotted else _spelled(node.func)
        return Target("transform", node, made_by=name)

    def _wrapped(self, node: ast.Call, inner: ast.expr | None, name: str, *, only_compiles: bool) -> Target:
        target = UNKNOWN if inner is None or isinstance(inner, ast.Starred) else self.classify(inner)
        stable = target.kind in ("stable", "hits") or (target.is_fresh and self._lives_longer(target, node))
        again: Literal["traces", "compiles"] = (
            "compiles" if stable and self._keeps_trace(inner, only_compiles) else "traces"
        )
        return Target("transform", node, target.function, again=again, made_by=last_part(name))

    def _keeps_trace(self, inner: ast.expr | None, only_compiles: bool) -> bool:
        """Whether the trace of the function inside is found again: under checkpoint, and where the innermost is a
        jit that is kept."""
        if only_compiles:
            return True
        if isinstance(inner, ast.Call):
            return self._jits.maker(inner.func) is not None
        if isinstance(inner, ast.Name):
            for function in self._definitions.functions(inner):
                if isinstance(function, DEFINITIONS) and any(self._jits.maker(d) for d in function.decorator_list):
                    return True
        return False

    def _lives_longer(self, target: Target, node: ast.AST) -> bool:
        """Whether an object is made by a function around the one that evaluates `node`."""
        if target.origin is None:
            return True
        return place_of(self._source, target.origin).function is not place_of(self._source, node).function

    def _makes_instance(self, call: ast.Call) -> bool:
        dotted = self._names.dotted(call.func)
        return self._definitions.class_of_call(call) is not None or any(
            last_part(name)[:1].isupper() for name in dotted
        )

    def _returned(self, function: Function, call: ast.Call) -> Target:
        """What a call of a function in this file gives."""
        if self._caches.caches(function):
            return replace(HITS, function=None)
        if isinstance(function, DEFINITIONS) and (
            isinstance(function, ast.AsyncFunctionDef) or any(True for d in function.decorator_list)
        ):
            return Target("transform", call, made_by=function.name)
        values = [function.body] if isinstance(function, ast.Lambda) else list(returns_of(function))
        if not values:
            return UNKNOWN
        found = _costliest([self.classify(value) for value in values])
        name = function.name if isinstance(function, DEFINITIONS) else "a lambda"
        if found.is_fresh:
            made_here = found.origin is not None and self._within(found.origin, function)
            if made_here:
                return Target("transform", call, found.function, made_by=name)
            return found
        if found.parameter is not None and found.parameter.scope.node is function:
            passed = self._definitions.argument(call, function, found.parameter.name)
            return UNKNOWN if passed is None else self.classify(passed)
        return found

    def _within(self, node: ast.AST, ancestor: ast.AST) -> bool:
        return any(parent is ancestor for _, parent in self._source.ancestors(node))


def returns_of(function: Function) -> Iterable[ast.expr]:
    """The expressions that a function returns, not those of functions inside it."""
    pending: list[ast.AST] = [] if isinstance(function, ast.Lambda) else list(function.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Return):
            if node.value is not None:
                yield node.value
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) and not isinstance(
            node, (*DEFINITIONS, ast.ClassDef)
        ):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                pending += getattr(node, field, ())


def class_around(source: Source, node: ast.AST) -> ast.ClassDef | None:
    """The class around a node, through the functions between."""
    for _, parent in source.ancestors(node):
        if isinstance(parent, ast.ClassDef):
            return parent
    return None


def _costliest(targets: list[Target]) -> Target:
    return min(targets, key=lambda t: _ORDER[t.kind], default=UNKNOWN)


def _spelled(node: ast.expr) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else "another call"
