"""Question 1: is it a jit? Finds each place of a module where a jitted callable is made."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.facts import known
from flake8_jitcache.facts.names import Names, pattern
from flake8_jitcache.facts.scopes import DEFINITIONS, Binding, Definition, Source
from flake8_jitcache.options import Options

# The names under which jits take their function by keyword.
_TARGET_KEYWORDS = ("fun", "f", "fn", "func")


@dataclass(frozen=True)
class Maker:
    """Something that jits what it is given: which jits it may be, and the options already bound."""

    dotted: frozenset[str]
    keywords: tuple[ast.keyword, ...] = ()

    @property
    def is_pmap(self) -> bool:
        return self.dotted <= known.PMAPS

    @property
    def is_equinox(self) -> bool:
        return self.dotted <= known.EQUINOX_JITS

    @property
    def is_nnx(self) -> bool:
        return self.dotted <= known.NNX_JITS

    @property
    def wraps_anew(self) -> bool:
        """Whether it wraps what it is given in a new function, so that also one that stays the same is traced again."""
        return self.dotted <= known.WRAPPING_JITS

    @property
    def name(self) -> str:
        """How to speak of it: the shortest of its names."""
        return min(self.dotted, key=lambda name: (len(name), name))


@dataclass(frozen=True, eq=False)
class Creation:
    """A place where a jitted callable is made: a call of a jit, or a decorator (then `definition` is what it
    decorates). `target` is what is jitted: an expression, the definition, or None where it can't be seen."""

    node: ast.expr
    maker: Maker
    target: ast.expr | Definition | None
    definition: Definition | None = None

    def option(self, name: str) -> ast.expr | None:
        """The value of a keyword option such as `static_argnums`, the outermost one given."""
        given = list(self.maker.keywords)
        if isinstance(self.node, ast.Call) and self.definition is None:
            given += self.node.keywords
        return next((keyword.value for keyword in reversed(given) if keyword.arg == name), None)


class Jits:
    """Recognises jits and lists the creations of a module."""

    def __init__(self, source: Source, names: Names, options: Options) -> None:
        self._source = source
        self._names = names
        self._patterns = [pattern(name) for name in options.jit_names]
        self._of_binding: dict[Binding, Maker | None] = {}
        self.creations = self._find()

    def maker(self, node: ast.AST) -> Maker | None:
        """The jit that an expression stands for, or None. A name that is a jit on one path counts as one."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            jits = frozenset(name for name in self._names.dotted(node) if self.is_jit(name))
            if jits:
                return Maker(jits)
            return self._through_name(node) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Call):
            return self._through_call(node)
        if isinstance(node, ast.IfExp):
            return self.maker(node.body) or self.maker(node.orelse)
        return None

    def is_jit(self, dotted: str) -> bool:
        """Whether a dotted name is a jit, by itself or by the options."""
        return dotted in known.JITS or any(p.fullmatch(dotted) for p in self._patterns)

    def _through_name(self, node: ast.Name) -> Maker | None:
        for binding in self._source.reaching(node):
            if binding.kind != "assign" or not isinstance(binding.value, (ast.Call, ast.IfExp)):
                continue
            if binding not in self._of_binding:
                self._of_binding[binding] = None  # while it is being looked at
                self._of_binding[binding] = self.maker(binding.value)
            found = self._of_binding[binding]
            if found is not None:
                return found
        return None

    def _through_call(self, node: ast.Call) -> Maker | None:
        if not node.args:
            inner = self.maker(node.func)
            if inner is None or _target_keyword(node) is not None:
                return None
            return Maker(inner.dotted, (*inner.keywords, *node.keywords))
        if (
            len(node.args) > 1
            or not self._names.dotted(node.func) & known.PARTIALS
            or _target_keyword(node) is not None
        ):
            return None
        inner = self.maker(node.args[0])
        return inner and Maker(inner.dotted, (*inner.keywords, *node.keywords))

    def _find(self) -> list[Creation]:
        source = self._source
        found: list[Creation] = []
        for node in source.calls:
            target: ast.expr | None
            if node.args:
                target = node.args[0]
            else:
                target = _target_keyword(node)
                if target is None:
                    continue
            maker = self.maker(node.func)
            if maker is not None:
                found.append(Creation(node, maker, None if isinstance(target, ast.Starred) else target))
        for function in source.functions:
            if isinstance(function, DEFINITIONS):
                for decorator in function.decorator_list:
                    maker = self.maker(decorator)
                    if maker is not None:
                        found.append(Creation(decorator, maker, function, function))
                        break
        return found


def _target_keyword(node: ast.Call) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg in _TARGET_KEYWORDS), None)
