"""One text under repair: both syntax trees, the answers of the linter, and where code can move to."""

from __future__ import annotations

import ast
import builtins
import keyword
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from flake8_jitcache.analysis import analyse
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Binding, Scope
from flake8_jitcache.findings import Finding
from flake8_jitcache.fix.edits import Edit, Grammar, Positions, Span
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.source_file import LINE_END
from flake8_jitcache.options import Options
from flake8_jitcache.rules.lifetimes import Lifetime


@dataclass(frozen=True)
class Gap:
    """A place between top-level statements where code can be put.

    newline: the file's line end. ended: whether the line before has one. above, below: how many blank lines there are
    now. spacious: whether what is next to it is a function or class, which wants two blank lines.
    """

    offset: int
    newline: str
    ended: bool
    above: int
    below: int
    spacious: bool

    def insert(self, text: str) -> Edit:
        """Put code there, with blank lines around it."""
        lines = text.split(self.newline)
        wanted = 2 if self.spacious or any(line.startswith(("def ", "@")) for line in lines) else 1
        before = max(0, wanted - self.above) + (0 if self.ended else 1)
        after = max(0, wanted - self.below) + 1
        return Edit(self.offset, self.offset, self.newline * before + text + self.newline * after)


class Document:
    """A parsed text. The file's name tells test modules from others. Raises SyntaxError or ValueError where Python
    can't parse it."""

    def __init__(self, text: str, options: Options, filename: str = "") -> None:
        self.text = text
        self.options = options
        self.filename = filename
        self.tree = ast.parse(text)
        self.positions = Positions(text)
        self._analysis = analyse(self.tree, options, filename)
        self.module = self._analysis.module
        self.source = self.module.source

    @property
    def findings(self) -> list[Finding]:
        """What the linter says about the text."""
        return self._analysis.findings

    @cached_property
    def grammar(self) -> Grammar:
        return Grammar(self.text)

    @cached_property
    def misparsed(self) -> str:
        """Why ast-grep's tree can't be trusted, in one line; empty where it can."""
        return self.grammar.misparsed(self.tree, self.positions)

    @cached_property
    def _lifetimes(self) -> dict[tuple[ast.AST, bool], Lifetime]:
        found: dict[tuple[ast.AST, bool], Lifetime] = {}
        for lifetime in self._analysis.lifetimes.all:
            found.setdefault((lifetime.node, lifetime.factory is not None), lifetime)
        return found

    def lifetime(self, finding: Finding) -> Lifetime:
        """The linter's answers behind one of its JIT1xx findings."""
        known = self._lifetimes
        of_factory = finding.code == "JIT106"
        return known.get((finding.node, of_factory)) or known[finding.node, not of_factory]

    # ---------------------------------------------------------------- text

    def segment(self, node: ast.AST) -> str:
        """The source text of a node. Raises Refused where its position can't be trusted (in f-strings before 3.12)."""
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: ast.AST) -> Span:
        """Where a node stands. Raises Refused where its position can't be trusted (in f-strings before 3.12)."""
        start, end = self.positions.span(node)
        if isinstance(node, ast.expr) and not self._is_here(node, self.text[start:end]):
            raise Refused("this Python has no true positions inside f-strings; 3.12 has")
        return start, end

    def _is_here(self, node: ast.expr, text: str) -> bool:
        if sys.version_info >= (3, 12) or not any(
            isinstance(parent, ast.JoinedStr) for _, parent in self.source.ancestors(node)
        ):
            return True
        try:
            return ast.dump(ast.parse(f"({text})", mode="eval").body) == ast.dump(node)
        except SyntaxError:
            return False

    @cached_property
    def newline(self) -> str:
        """The file's line end: that of its first line."""
        found = LINE_END.search(self.text)
        return found.group() if found else "\n"

    @cached_property
    def indent(self) -> str:
        """One level of indentation: that of the first indented function or class body."""
        for node in ast.walk(self.tree):
            if isinstance(node, (*DEFINITIONS, ast.ClassDef)) and node in self.tree.body:
                found = self.indentation(node.body[0].lineno)
                if found:
                    return found
        return "    "

    def indentation(self, line: int) -> str:
        """The white space that a 1-based line begins with."""
        text = self.positions.line(line)
        return text[: len(text) - len(text.lstrip(" \t\f"))]

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines for itself, but for a comment behind it."""
        start, end = self.positions.span(statement)
        if isinstance(statement, (*DEFINITIONS, ast.ClassDef)) and statement.decorator_list:
            start = self.positions.line_start(statement.decorator_list[0].lineno)
        head = self.text[self.positions.line_start(self.first_line(statement)) : start]
        last = statement.end_lineno
        assert last is not None
        tail = self.text[end : self.positions.line_start(last + 1)].strip()
        return not head.strip() and (not tail or tail.startswith("#"))

    @staticmethod
    def first_line(statement: ast.stmt) -> int:
        """The line on which a statement begins, decorators included."""
        decorators = getattr(statement, "decorator_list", [])
        return min([statement.lineno, *(int(decorator.lineno) for decorator in decorators)])

    # ---------------------------------------------------------------- names

    @cached_property
    def identifiers(self) -> set[str]:
        """Every name that the text uses for anything, and those that Python has itself."""
        found = set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, (*DEFINITIONS, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                found.update(node.names)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
                found.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                found.add(node.rest)
        return found

    def owner(self, name: ast.Name) -> Scope | None:
        """The scope that binds a loaded name, or None."""
        return self.source.lookup(self.source.scopes[name], name.id)

    def loads_of(self, binding: Binding) -> list[ast.Name]:
        """The loads that may see a binding."""
        loads = self.source.references.get((binding.scope, binding.name), [])
        return [load for load in loads if binding in self.source.reaching(load)]

    # ---------------------------------------------------------------- where to

    def top_statement(self, node: ast.AST) -> ast.stmt:
        """The statement of the module's own body that holds a node."""
        for child, parent in self.source.ancestors(node):
            if parent is self.tree:
                assert isinstance(child, ast.stmt)
                return child
        raise Refused("it stands nowhere in the module")

    def gap_for(self, holder: ast.stmt, needed: Iterable[ast.Name]) -> Gap:
        """Where a definition that evaluates the names `needed` at once can be put: above the top-level statement that
        uses it, else below the last one that it needs. Raises Refused where a name is not surely bound at either."""
        above = self.first_line(holder)
        last: ast.stmt | None = None
        for name in needed:
            statement = self._bound_by(name)
            if statement is not None and (last is None or statement.lineno > last.lineno):
                last = statement
        if last is None or (last is not holder and last.lineno < above):
            return self._above(holder)
        if not isinstance(holder, (*DEFINITIONS, ast.ClassDef)):
            raise Refused(f"line {last.lineno} would have to come before line {above}")
        return self._below(last)

    def known_inside(self, scope: Scope, name: str) -> Refused:
        """Why a name of a function is of no use at module level."""
        if scope.bindings[name][0].kind == "import":
            where = getattr(scope.function, "name", "a function")
            return Refused(f"`{name}` is imported inside `{where}`; at module level it would be needed at import")
        return Refused(f"`{name}` is known inside the function only")

    def _bound_by(self, name: ast.Name) -> ast.stmt | None:
        """The top-level statement that surely binds a name at import; None for a builtin."""
        scope = self.owner(name)
        if scope is None:
            if name.id in dir(builtins):
                return None
            raise Refused(f"where `{name.id}` comes from can't be seen")
        if scope is not self.source.module:
            raise self.known_inside(scope, name.id)
        bindings = scope.bindings[name.id]
        holders = {self._unconditional(binding) for binding in bindings}
        if len(bindings) > 1 and (None in holders or len(holders) > 1):
            lines = " and ".join(str(b.node.lineno) for b in bindings[:2])  # type: ignore[attr-defined]
            raise Refused(f"`{name.id}` may be different things at module level (lines {lines})")
        found = holders.pop()
        if found is None:
            raise Refused(f"`{name.id}` is not surely bound when the module is imported")
        return found

    def _unconditional(self, binding: Binding) -> ast.stmt | None:
        """The top-level statement that binds a name each time the module is imported, or None."""
        if binding.kind not in ("import", "def", "class", "assign"):
            return None
        statement = self.source.statement(binding.node)
        if binding.kind in ("def", "class"):
            statement = binding.node
        parent = self.source.parents.get(statement)
        if parent is self.tree:
            assert isinstance(statement, ast.stmt)
            return statement
        if binding.kind == "import":
            return self._try_of_imports(statement, binding.name)
        return None

    def _try_of_imports(self, statement: ast.AST, name: str) -> ast.stmt | None:
        """A top-level `try` whose body and handlers all import a name, or None."""
        parent = self.source.parents[statement]
        block = self.source.parents[parent] if isinstance(parent, ast.ExceptHandler) else parent
        if not isinstance(block, ast.Try) or self.source.parents[block] is not self.tree or block.orelse:
            return None
        for part in (block.body, *(handler.body for handler in block.handlers)):
            if not any(
                isinstance(s, (ast.Import, ast.ImportFrom)) and name in {a.asname or a.name for a in s.names}
                for s in part
            ):
                return None
        return block

    def _above(self, holder: ast.stmt) -> Gap:
        line = self.first_line(holder)
        index = self.tree.body.index(holder)
        previous = self.tree.body[index - 1].end_lineno if index else 0
        assert previous is not None
        while line - 1 > previous and line > 1 and self.positions.line(line - 1).startswith("#"):
            line -= 1
        if line == 1:
            line = self.first_line(holder)  # a comment at the head of the file is about the file
        if line <= previous or self.positions.line_start(line) > self.positions.span(holder)[0]:
            raise Refused(f"line {line} has more than one statement")
        blank = self._blank_lines(line - 1, -1)
        if line - 1 - blank == 0:
            blank = 2  # at the head of the file
        spacious = isinstance(holder, (*DEFINITIONS, ast.ClassDef))
        return Gap(self.positions.line_start(line), self.newline, True, blank, 0, spacious)

    def _below(self, statement: ast.stmt) -> Gap:
        line = statement.end_lineno
        assert line is not None
        if not self.stands_alone(statement):
            raise Refused(f"line {line} has more than one statement")
        ended = self.positions.line(line).endswith(("\n", "\r"))
        at_end = not self.text[self.positions.line_start(line + 1) :].strip()
        below = 2 if at_end else self._blank_lines(line + 1, 1)
        return Gap(self.positions.line_start(line + 1), self.newline, ended, 0, below, True)

    def _blank_lines(self, line: int, step: int) -> int:
        """How many blank lines there are from a line on, upwards or downwards."""
        count = 0
        while 1 <= line <= len(self.positions.starts) and not self.positions.line(line).strip():
            count += 1
            line += step
        return count

    def import_of(self, dotted: str) -> str | None:
        """How a module-level import of the text lets one write a dotted name, or None."""
        for name, bindings in self.source.module.bindings.items():
            if len(bindings) != 1 or bindings[0].kind != "import" or self._unconditional(bindings[0]) is None:
                continue
            of = bindings[0].dotted
            if of == dotted:
                return name
            if of == dotted.rpartition(".")[0]:
                return f"{name}.{dotted.rpartition('.')[2]}"
        return None

    def add_import(self, module: str) -> Edit:
        """Import a module of the standard library, above the first import that is not from `__future__`."""
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                continue
            if isinstance(statement, (ast.Import, ast.ImportFrom)) and self.stands_alone(statement):
                first = statement.names[0].name if isinstance(statement, ast.Import) else statement.module or ""
                of_python = first.partition(".")[0] in sys.stdlib_module_names
                offset = self.positions.line_start(statement.lineno)
                return Edit(offset, offset, f"import {module}{self.newline}" + ("" if of_python else self.newline))
        raise Refused(f"there is no place for `import {module}`")

    # ---------------------------------------------------------------- nodes

    def names_in(self, node: ast.AST) -> Iterator[ast.Name]:
        """The names that a node loads from around it when it is evaluated: not those in bodies of functions."""
        pending: list[ast.AST] = [node]
        while pending:
            current = pending.pop(0)
            if isinstance(current, FUNCTIONS):
                pending += [d for d in (*current.args.defaults, *current.args.kw_defaults) if d is not None]
            elif isinstance(current, ast.Name):
                if isinstance(current.ctx, ast.Load):
                    yield current
            else:
                pending += ast.iter_child_nodes(current)

    def within(self, node: ast.AST, ancestor: ast.AST) -> bool:
        """Whether a node is another one or stands in it."""
        return node is ancestor or any(parent is ancestor for _, parent in self.source.ancestors(node))
