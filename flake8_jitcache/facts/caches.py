"""Which functions run once per key: those under a caching decorator, of a library or of the file itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import last_part
from flake8_jitcache.facts.names import Names, pattern
from flake8_jitcache.facts.scopes import DEFINITIONS, Function, Source


class Caches:
    """Which functions run once per key, by what they are decorated with or passed to."""

    def __init__(self, source: Source, names: Names, extra: Iterable[str]) -> None:
        self._source = source
        self._names = names
        self._patterns = [pattern(name) for name in extra]
        self._known: dict[ast.AST, bool] = {}
        self._remembering: dict[ast.AST, bool] = {}

    def caches(self, function: Function) -> bool:
        """Whether calls of a function are cached."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = self._find(function)
        return found

    def is_cache(self, node: ast.AST) -> bool:
        """Whether an expression is a caching decorator, called or not."""
        if isinstance(node, ast.Call):
            if self.is_cache(node.func):
                return True
            if self._names.dotted(node.func) & known.PARTIALS and node.args:
                return self.is_cache(node.args[0])
            return False
        dotted = self._names.dotted(node)
        if not dotted and isinstance(node, ast.Attribute):
            dotted = frozenset({node.attr})  # memory.cache, cache.memoize: objects that nobody imported
        return self._is_of_this_file(node) or any(
            name in known.CACHE_DECORATORS
            or last_part(name) in known.CACHE_DECORATORS
            or any(p.fullmatch(name) for p in self._patterns)
            for name in dotted
        )

    def _find(self, function: Function) -> bool:
        if isinstance(function, DEFINITIONS):
            return any(self.is_cache(decorator) for decorator in function.decorator_list)
        parent = self._source.parents.get(function)
        return isinstance(parent, ast.Call) and function in parent.args and self.is_cache(parent.func)

    # ---------------------------------------------------------------- decorators of this file

    def _is_of_this_file(self, node: ast.AST) -> bool:
        """Whether a decorator is a function or a class of this file that keeps what the decorated function returns."""
        if not isinstance(node, ast.Name):
            return False
        makers = [b.node for b in self._source.reaching(node) if b.kind in ("def", "class")]
        return any(self._remembers(maker) for maker in makers)

    def _remembers(self, decorator: ast.AST) -> bool:
        found = self._remembering.get(decorator)
        if found is None:
            self._remembering[decorator] = False  # a decorator under itself is no cache
            nodes = list(ast.walk(decorator))
            looks_first = any(isinstance(node, (ast.If, ast.IfExp, ast.Try)) for node in nodes)
            found = any((looks_first and self._keeps_result(node)) or self._hands_to_cache(node) for node in nodes)
            self._remembering[decorator] = found
        return found

    def _keeps_result(self, node: ast.AST) -> bool:
        """Whether a node of a decorator stores a result of the decorated function where the next call finds it."""
        if isinstance(node, ast.Assign):
            return any(self._outlives_call(target) for target in node.targets) and self._is_result(node.value)
        if isinstance(node, ast.Call):
            return bool(self._names.dotted(node.func) & {"setattr"} and node.args) and self._is_result(node.args[-1])
        return False

    def _hands_to_cache(self, node: ast.AST) -> bool:
        """Whether a node of a decorator hands the decorated function to a cache."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        return self._is_decorated(node.args[0]) and self.is_cache(node.func)

    def _outlives_call(self, target: ast.expr) -> bool:
        """Whether a target is an item of something that lives longer than the call, or a name of a function around."""
        if isinstance(target, ast.Subscript):
            return isinstance(target.value, ast.Attribute) or self._is_from_around(target.value)
        return isinstance(target, ast.Name) and target.id in self._source.scopes[target].nonlocals

    def _is_result(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Name):
            values = [b.value for b in self._source.reaching(value) if b.kind == "assign"]
            return any(isinstance(v, ast.Call) and self._is_decorated(v.func, inside=True) for v in values)
        return isinstance(value, ast.Call) and self._is_decorated(value.func, inside=True)

    def _is_decorated(self, node: ast.expr, *, inside: bool = False) -> bool:
        """Whether an expression may be the decorated function: a parameter (of a function around, seen from the wrapper
        `inside`), or an attribute of the decorator's object."""
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and node.value.id == "self"
        if not isinstance(node, ast.Name) or (inside and not self._is_from_around(node)):
            return False
        return any(binding.kind == "parameter" for binding in self._source.reaching(node))

    def _is_from_around(self, node: ast.expr) -> bool:
        """Whether a name is one of a scope around the function that reads it."""
        if not isinstance(node, ast.Name):
            return False
        scope = self._source.scopes[node]
        owner = self._source.lookup(scope, node.id)
        return owner is not None and owner.function is not scope.function
