"""What makes a trace anew after a change: the code that changes a value also jits again, drops the jitted function, or
clears its cache."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Function

_CLEARS = frozenset({"clear_cache", "clear_caches", "_clear_cache", "clear_backends", "cache_clear"})
_EMPTIES = frozenset({"clear", "pop", "popitem"})
_MOST = 40  # functions that are looked into


class Invalidation:
    """Finds what drops the traces of jitted functions in one module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._holders: dict[ast.AST, frozenset[str]] = {}

    def follows(self, creation: Creation, change: ast.AST) -> bool:
        """Whether the function that makes a change, or each of those that alone call it, makes the trace anew as well."""
        around = functions_around(self._source, change)
        return bool(around) and self._drops(creation, around[0], {around[0]})

    def _drops(self, creation: Creation, function: Function, seen: set[Function]) -> bool:
        own = functions_around(self._source, creation.node)[:1] == [function]
        if any(self._is_drop(creation, node) for node in self._run_by(function) if not (own and _stores(node))):
            return True
        if not isinstance(function, DEFINITIONS) or not function.name.startswith("_") or function.name.endswith("__"):
            return False
        calls = self._module.definitions.calls_of(function)
        callers = {next(iter(functions_around(self._source, call)), None) for call in calls}
        if not callers or len(seen) > _MOST or len(calls) != len(self._module.definitions.uses(function)):
            return False
        for caller in callers:
            if caller is None or caller in seen or not self._drops(creation, caller, seen | {caller}):
                return False
        return True

    def _run_by(self, function: Function) -> Iterator[ast.AST]:
        """The nodes of a function's body, and of what it calls in the file."""
        pending = [function]
        seen: set[Function] = set()
        while pending and len(seen) < _MOST:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            for node in ast.walk(current):
                yield node
                if isinstance(node, ast.Call):
                    pending += self._module.definitions.functions(node.func)

    def _is_drop(self, creation: Creation, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if self._module.names.dotted(node.func) & {"jax.clear_caches", "jax.clear_backends"}:
                return True
            if isinstance(node.func, ast.Attribute):
                if node.func.attr in _CLEARS:
                    return True
                return node.func.attr in _EMPTIES and _spelled(node.func.value) in self.holders(creation)
            return False
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if isinstance(node, ast.Name) and self._source.scopes[node].function is not None:
                scope = self._source.lookup(self._source.scopes[node], node.id)
                if scope is None or scope.kind != "module":
                    return False
            return _spelled(node) in self.holders(creation) and not self._is_warm_again(creation, node)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            return _spelled(node.value) in self.holders(creation)
        return False

    def _is_warm_again(self, creation: Creation, target: ast.AST) -> bool:
        """Whether what is stored is a jit of the same lasting function, which finds the old trace; or no jit's holder."""
        statement = self._source.parents[target]
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if not isinstance(value, ast.Call) or self._module.jits.maker(value.func) is None or not value.args:
            return False
        return self._module.targets.classify(value.args[0]).kind in ("stable", "hits")

    def holders(self, creation: Creation) -> frozenset[str]:
        """The names of attributes, globals and containers that hold a jitted function, and of what is asked before it is
        made."""
        if creation.node not in self._holders:
            self._holders[creation.node] = frozenset(self._find_holders(creation))
        return self._holders[creation.node]

    def _find_holders(self, creation: Creation) -> Iterator[str]:
        if creation.definition is not None:
            yield creation.definition.name
        nodes: list[ast.AST] = [creation.node]
        nodes += [use.node for use in self._module.uses.of(creation) if use.kind == "kept"]
        for node in nodes:
            for child, parent in self._source.ancestors(node):
                if isinstance(parent, FUNCTIONS):
                    break
                if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and (
                    self._source.fields[child] == "value"
                ):
                    for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                        for inner in ast.walk(target):
                            if isinstance(inner, (ast.Name, ast.Attribute)) and not _is_receiver(inner, target):
                                yield _spelled(inner)
                if isinstance(parent, ast.If):
                    for inner in ast.walk(parent.test):
                        if isinstance(inner, (ast.Name, ast.Attribute)):
                            yield _spelled(inner)


def _stores(node: ast.AST) -> bool:
    """Whether a node is a target: where the jitted function is made in the same flow, the order of the two tells more."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _is_receiver(node: ast.AST, target: ast.AST) -> bool:
    """Whether a name is `self` of `self.run`."""
    return isinstance(node, ast.Name) and any(
        isinstance(outer, ast.Attribute) and outer.value is node for outer in ast.walk(target)
    )


def _spelled(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
