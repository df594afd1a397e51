"""An expression that makes a jitted function, written out for module level: local names replaced by what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from flake8_jitcache.facts import known
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition, Function
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, Span, splice
from flake8_jitcache.fix.moving import definition_lines
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.stable_names import is_constant

# Constructors of values that are the same whenever they are made.
_VALUES = frozenset({"jax.sharding.PartitionSpec", "jax.P", "tuple", "frozenset"})


@dataclass
class Expansion:
    """Writes an expression out.

    needed: names that it evaluates. carriers: statements that gave names to its parts. kept: the spans whose text moves
    on. functions: the lambdas and nested functions in it; of these, `definitions` have to be defined above it, under
    the names that `renamed` gives them. assumptions: what has to hold.
    """

    document: Document
    needed: list[ast.Name] = field(default_factory=list)
    carriers: list[ast.stmt] = field(default_factory=list)
    kept: list[Span] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    renamed: dict[ast.AST, str] = field(default_factory=dict)
    named: dict[ast.Name, Definition] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)

    def read(self, node: ast.expr) -> None:
        """Go through an expression and what its local names stand for. Raises Refused for what can't be moved."""
        pending: list[ast.AST] = [node]
        self.kept.append(self.document.span(node))
        while pending:
            current = pending.pop(0)
            if isinstance(current, ast.Lambda):
                self.functions.append(current)
                pending += [d for d in (*current.args.defaults, *current.args.kw_defaults) if d is not None]
            elif isinstance(current, ast.Name):
                if isinstance(current.ctx, ast.Load):
                    self._name(current)
            elif isinstance(current, ast.Call):
                self._check_call(current)
                pending += ast.iter_child_nodes(current)
            elif isinstance(current, ast.Attribute):
                self._attribute(current)
                pending.append(current.value)
            elif isinstance(current, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, *_LOOPING)):
                raise Refused(f"`{ast.unparse(current)}` is evaluated on each call")
            else:
                pending += ast.iter_child_nodes(current)

    def _name(self, name: ast.Name) -> None:
        document = self.document
        owner = document.owner(name)
        if owner is None or owner is document.source.module:
            if owner is not None and not is_constant(document.module, name.id):
                raise Refused(f"it is made of the global `{name.id}`, which changes")
            self.needed.append(name)
            return
        bindings = document.source.reaching(name)
        if len(bindings) != 1:
            raise Refused(f"`{name.id}` may be one of several things")
        binding = bindings[0]
        if binding.kind == "import":
            raise document.known_inside(owner, name.id)
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            definition = binding.node
            if definition.decorator_list or isinstance(definition, ast.AsyncFunctionDef):
                raise Refused(f"`{name.id}` is decorated, and made on each call")
            self.named[name] = definition
            if definition not in self.definitions:
                self.definitions.append(definition)
                self.functions.append(definition)
                self.carriers.append(definition)
                self.kept.append(definition_lines(document, definition))
            return
        if binding.kind != "assign" or binding.value is None or not isinstance(binding.value, (ast.Call, ast.Lambda)):
            what = "parameter" if binding.kind == "parameter" else "local"
            raise Refused(f"it is made of the {what} `{name.id}`")
        statement = document.source.parents[binding.value]
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            raise Refused(f"`{name.id}` is bound in the middle of an expression")
        if statement not in self.carriers:
            self.carriers.append(statement)
        self.read(binding.value)

    def _attribute(self, node: ast.Attribute) -> None:
        """A method of a module-level object: what it reads there is read once per trace."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or self.document.owner(root) is not self.document.source.module:
            return
        bound = self.document.source.reaching(root)
        if self.document.module.names.dotted(node):
            return
        if any(binding.kind not in ("import", "class", "def") for binding in bound):
            self.assumptions.append(f"what `{ast.unparse(node)}` reads on its object does not change")

    def _check_call(self, call: ast.Call) -> None:
        """Only what makes functions of functions can be evaluated at import instead: it does nothing else."""
        module = self.document.module
        dotted = module.names.dotted(call.func)
        if dotted and dotted <= known.TRANSFORMS | known.PARTIALS | _VALUES:
            return
        if module.jits.maker(call.func) is not None or module.jits.maker(call) is not None:
            return
        if isinstance(call.func, ast.Call):
            inner = module.names.dotted(call.func.func)
            if inner and inner <= known.PARTIALS:
                return
        raise Refused(f"`{ast.unparse(call.func)}(...)` is evaluated on each call, and would be at import")

    def text(self, node: ast.expr, replaced: Mapping[Span, str]) -> str:
        """The expression, written out; what stands at the spans `replaced` is replaced."""
        document = self.document
        start, end = document.span(node)
        if (start, end) in replaced:
            return replaced[start, end]
        edits = [Edit(*where, text) for where, text in replaced.items() if start <= where[0] and where[1] <= end]
        for name in document.names_in(node):
            owner = document.owner(name)
            if owner is None or owner is document.source.module:
                continue
            if name in self.named:
                edits.append(Edit(*document.span(name), self.renamed[self.named[name]]))
                continue
            value = document.source.reaching(name)[0].value
            assert value is not None
            written = self.text(value, replaced)
            parent = document.source.parents[name]
            plain = isinstance(value, ast.Call) or isinstance(parent, (ast.Call, ast.keyword))
            edits.append(Edit(*document.span(name), written if plain else f"({written})"))
        return splice(document.text[start:end], edits, start)


_LOOPING = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
