"""The one import resolver: which dotted names an expression may stand for."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable

from flake8_jitcache.facts.scopes import Binding, Source

_BUILTINS = frozenset(dir(builtins))
_NOTHING: frozenset[str] = frozenset()


def pattern(dotted: str) -> re.Pattern[str]:
    """The regular expression of a dotted name with `*`, which stands for one or more whole parts or the rest of one."""
    parts = []
    for part in dotted.split("."):
        parts.append(r".+" if part == "*" else re.escape(part).replace(r"\*", r"[^.]*"))
    return re.compile(r"\.".join(parts))


class Names:
    """Follows imports, aliases and aliases of aliases to dotted names.

    A name that has different meanings on different paths (`try`/`except`, `if`/`else`) has all of them. Imports from
    the package itself keep their leading dots. What is not reached through an import has no dotted name, but for
    builtins, which have their own.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._of_binding: dict[Binding, frozenset[str]] = {}
        self._of_load: dict[ast.Name, frozenset[str]] = {}
        self._following = 0

    def dotted(self, node: ast.AST) -> frozenset[str]:
        """The dotted names that `node` may stand for; empty where it is not a plain name of something imported."""
        tail: list[str] = []
        while isinstance(node, ast.Attribute):
            tail.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return _NOTHING
        names = self._of_name(node)
        if tail and names:
            suffix = "." + ".".join(reversed(tail))
            return frozenset(name + suffix for name in names)
        return names

    def _of_name(self, node: ast.Name) -> frozenset[str]:
        known = self._of_load.get(node)
        if known is None:
            source = self.source
            if source.lookup(source.scopes[node], node.id) is None:
                known = frozenset({node.id}) if node.id in _BUILTINS else _NOTHING
            else:
                known = self._union(source.reaching(node))
            if not self._following:  # inside a circle of aliases, an answer is not the whole answer
                self._of_load[node] = known
        return known

    def _union(self, bindings: Iterable[Binding]) -> frozenset[str]:
        found: frozenset[str] = _NOTHING
        for binding in bindings:
            found |= self.of_binding(binding)
        return found

    def of_binding(self, binding: Binding) -> frozenset[str]:
        """The dotted names that one binding gives its name."""
        known = self._of_binding.get(binding)
        if known is not None:
            return known
        self._of_binding[binding] = _NOTHING  # an alias of itself leads nowhere
        if binding.kind == "import":
            found = frozenset({binding.dotted or ""})
        elif binding.kind == "assign" and binding.value is not None:
            self._following += 1
            found = self._of_value(binding.value)
            self._following -= 1
        else:
            found = _NOTHING
        self._of_binding[binding] = found
        return found

    def _of_value(self, value: ast.expr) -> frozenset[str]:
        if isinstance(value, (ast.Name, ast.Attribute)):
            return self.dotted(value)
        if isinstance(value, ast.IfExp):
            return self._of_value(value.body) | self._of_value(value.orelse)
        if isinstance(value, ast.BoolOp):
            return frozenset().union(*(self._of_value(part) for part in value.values))
        return _NOTHING
