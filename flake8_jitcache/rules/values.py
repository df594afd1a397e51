"""What kind of value an expression is, as far as `hash` and `==` go. Measured: see JIT301's and JIT304's pages."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.facts import known
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.scopes import DEFINITIONS, Binding

_DATACLASSES = frozenset({"dataclasses.dataclass"})
# Methods of strings, and builtins, that give a list.
_LISTS = frozenset({"sorted", "dir"})
_LIST_METHODS = frozenset({"split", "rsplit", "splitlines", "tolist"})


@dataclass(frozen=True)
class Fresh:
    """A value that is equal to itself only: where it is made, what it is, and what to do instead."""

    node: ast.AST
    what: str
    remedy: str


class Values:
    """Classifies values of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source

    # ---------------------------------------------------------------- hash

    def unhashable(self, node: ast.expr, depth: int = 0) -> str | None:
        """What an expression is, where that is certainly unhashable ("a list"), else None."""
        if depth > 6:
            return None
        if isinstance(node, (ast.List, ast.ListComp)):
            return "a list"
        if isinstance(node, (ast.Dict, ast.DictComp)):
            return "a dict"
        if isinstance(node, (ast.Set, ast.SetComp)):
            return "a set"
        if isinstance(node, ast.Tuple):
            inner = next((kind for e in node.elts if (kind := self.unhashable(e, depth + 1))), None)
            return inner and (inner if inner.startswith("a tuple") else f"a tuple with {inner} in it")
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            sides = (self.unhashable(node.left, depth + 1), self.unhashable(node.right, depth + 1))
            return next((side for side in sides if side in ("a list",) or (side and "array" in side)), None)
        if isinstance(node, ast.IfExp):
            body, other = self.unhashable(node.body, depth + 1), self.unhashable(node.orelse, depth + 1)
            return body if other else None
        if isinstance(node, ast.NamedExpr):
            return self.unhashable(node.value, depth + 1)
        if isinstance(node, ast.Name):
            return self._unhashable_name(node, depth)
        if isinstance(node, ast.Call):
            return self._unhashable_call(node)
        return None

    def _unhashable_name(self, node: ast.Name, depth: int) -> str | None:
        bindings = [b for b in self._source.reaching(node) if b.kind != "augmented"]
        kinds = [self._unhashable_binding(b, depth) for b in bindings]
        return kinds[0] if kinds and all(kinds) else None

    def _unhashable_binding(self, binding: Binding, depth: int) -> str | None:
        if binding.kind != "assign" or binding.value is None or binding.index is not None:
            return None
        return self.unhashable(binding.value, depth + 1)

    def _unhashable_call(self, node: ast.Call) -> str | None:
        dotted = self._module.names.dotted(node.func)
        for name in sorted(dotted):
            if name in known.NUMPY_ARRAYS:
                return "a numpy array"
            if name in known.JAX_ARRAYS:
                return "a JAX array"
            if name in known.MUTABLE_MAKERS:
                return f"a {name.rpartition('.')[2]}"
            if name in _LISTS:
                return "a list"
        if isinstance(node.func, ast.Attribute):
            constant = isinstance(node.func.value, ast.Constant) and isinstance(node.func.value.value, str)
            if node.func.attr in _LIST_METHODS and (constant or node.func.attr == "tolist"):
                return "a list"
            if node.func.attr == "copy" and not node.args:
                return self.unhashable(node.func.value, 1)
        owner = self._module.definitions.class_of_call(node)
        return None if owner is None else self._unhashable_instance(owner)

    def _unhashable_instance(self, owner: ast.ClassDef) -> str | None:
        if self.equality(owner) == "unhashable":
            return f"an instance of `{owner.name}`, which defines `__eq__` and no `__hash__`,"
        return None

    # ---------------------------------------------------------------- equality

    def fresh(self, node: ast.expr, depth: int = 0) -> Fresh | None:
        """The value of an expression where it is made there (or where its name is bound) and equal to itself only."""
        if depth > 6:
            return None
        if isinstance(node, ast.Lambda):
            return Fresh(node, "a lambda", "define the function once at module level and pass that")
        if isinstance(node, ast.Tuple):
            return next((made for e in node.elts if (made := self.fresh(e, depth + 1)) is not None), None)
        if isinstance(node, ast.IfExp):
            return self.fresh(node.body, depth + 1) or self.fresh(node.orelse, depth + 1)
        if isinstance(node, ast.NamedExpr):
            return self.fresh(node.value, depth + 1)
        if isinstance(node, ast.Name):
            bindings = self._source.reaching(node)
            return self._fresh_binding(bindings[0], depth) if len(bindings) == 1 else None
        if isinstance(node, ast.Call):
            return self._fresh_call(node)
        return None

    def _fresh_binding(self, binding: Binding, depth: int) -> Fresh | None:
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            if any(self._module.caches.is_cache(d) for d in binding.node.decorator_list):
                return None
            name = binding.node.name
            return Fresh(binding.node, f"the nested function `{name}`", f"define `{name}` once at module level")
        if binding.kind == "assign" and binding.value is not None and binding.index is None:
            return self.fresh(binding.value, depth + 1)
        return None

    def _fresh_call(self, node: ast.Call) -> Fresh | None:
        dotted = self._module.names.dotted(node.func)
        if dotted & known.PARTIALS:
            remedy = "make the partial once at module level, or pass the bound values as arguments"
            return Fresh(node, "a partial", remedy)
        if dotted & known.TRANSFORMS - known.IMMEDIATE or self._module.jits.maker(node.func) is not None:
            if not node.args:
                return None
            name = min(dotted, default="jit").rpartition(".")[2]
            return Fresh(node, f"the result of `{name}`", "make it once at module level")
        if dotted == {"object"}:
            return Fresh(node, "an `object()`", "make it once at module level")
        if dotted == {"float"} and len(node.args) == 1 and _spells_nan(node.args[0]):
            return Fresh(node, "a NaN", "use `math.nan`, which is one object")
        owner = self._module.definitions.class_of_call(node)
        if owner is not None and self.equality(owner) == "identity":
            remedy = f"make it once, or give `{owner.name}` an `__eq__` and a `__hash__` (a frozen dataclass has both)"
            return Fresh(node, f"an instance of `{owner.name}`", remedy)
        return None

    def equality(self, owner: ast.ClassDef) -> str:
        """How instances of a class compare: "identity", "value", "unhashable", or "unknown" where that comes from a
        base, a decorator or a metaclass that the file does not show."""
        if owner.keywords or any(not self._is_dataclass(d) for d in owner.decorator_list):
            return "unknown"
        scope = self._source.scope_of_function[owner]
        has_eq, has_hash = "__eq__" in scope.bindings, "__hash__" in scope.bindings
        if "__new__" in scope.bindings:
            return "unknown"
        for decorator in owner.decorator_list:
            options = _flags(decorator)
            if options is None:
                return "unknown"
            if options.get("eq", True) and not has_eq:
                hashed = options.get("frozen", False) or options.get("unsafe_hash", False) or has_hash
                return "value" if hashed else "unhashable"
        if has_hash:
            return "value"
        if has_eq:
            return "unhashable"
        inherited = "identity"
        for base in owner.bases:
            if isinstance(base, ast.Name):
                if self._module.names.dotted(base) == {"object"}:
                    continue
                local = [b.node for b in self._source.reaching(base) if isinstance(b.node, ast.ClassDef)]
                if len(local) == 1 and local[0] is not owner:
                    inherited = self.equality(local[0])
                    continue
            return "unknown"
        return inherited

    def _is_dataclass(self, decorator: ast.expr) -> bool:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self._module.names.dotted(node) == _DATACLASSES


def _flags(decorator: ast.expr) -> dict[str, bool] | None:
    """The options of a dataclass decorator; None where one is not a literal."""
    if not isinstance(decorator, ast.Call):
        return {}
    found: dict[str, bool] = {}
    for keyword in decorator.keywords:
        if keyword.arg is None or not isinstance(keyword.value, ast.Constant):
            return None
        found[keyword.arg] = bool(keyword.value.value)
    return found


def _spells_nan(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower().strip("+-") == "nan"
