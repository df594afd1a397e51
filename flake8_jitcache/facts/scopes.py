"""A module's tree with what `ast` leaves out: parents, scopes, bindings, and which loads refer to which scope.

Scopes are Python's own: decorators, defaults and annotations belong to the scope around a function, a class body is
not seen from its methods, a comprehension has a scope of its own except for its first iterable, a walrus binds in the
function around the comprehension. The walk keeps its own stack, so that depth is bounded by `ast` alone.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, cast

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Position: TypeAlias = tuple[int, int]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

# A name with more bindings than this at one place is followed to the last of them alone: linear time.
_MOST = 64

BindingKind = Literal[
    "import", "assign", "unpack", "augmented", "loop", "with", "except", "match", "parameter", "def", "class", "delete"
]

# Fields that hold no child of interest: operators and expression contexts are shared singletons.
_SKIPPED = frozenset({"ctx", "op", "ops", "type_ignores", "type_comment", "type_params"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def start(node: ast.AST) -> Position:
    """Where a node begins (1-based line, 0-based column in UTF-8 bytes)."""
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def end(node: ast.AST) -> Position:
    """Where a node ends."""
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def is_repeated(parent: ast.AST, field: str) -> bool:
    """Whether a child in this field of a loop or comprehension is evaluated once per iteration."""
    if isinstance(parent, LOOPS):
        return field == "body" or (field == "test" and isinstance(parent, ast.While))
    return isinstance(parent, COMPREHENSIONS) and field != "first iter"


class Scope:
    """One namespace: a module, class, function or comprehension, or the type parameters of one."""

    __slots__ = ("bindings", "children", "function", "globals", "kind", "loads", "node", "nonlocals", "parent")

    def __init__(self, kind: str, node: ast.AST, parent: Scope | None) -> None:
        self.kind: str = kind
        self.node = node
        self.parent = parent
        self.children: list[Scope] = []
        self.bindings: dict[str, list[Binding]] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.function: Function | None = None
        """The function whose body this scope's code runs in, or None at module and class level."""
        if kind == "function":
            self.function = cast(Function, node)
        elif parent is not None:
            self.function = parent.function
        if parent is not None:
            parent.children.append(self)

    def is_within(self, outer: Scope) -> bool:
        """Whether this scope is `outer` or inside it."""
        scope: Scope | None = self
        while scope is not None and scope is not outer:
            scope = scope.parent
        return scope is outer

    def within(self) -> Iterator[Scope]:
        """This scope and all scopes inside it."""
        pending = [self]
        while pending:
            scope = pending.pop()
            yield scope
            pending += scope.children


class Binding:
    """One place that gives a name a value. `value` is the expression bound, where there is one; `index` its place in
    an unpacked tuple. `effective` is the position from which on the name has it."""

    __slots__ = ("dotted", "effective", "index", "kind", "name", "node", "scope", "value")

    def __init__(
        self,
        kind: BindingKind,
        name: str,
        node: ast.AST,
        scope: Scope,
        value: ast.expr | None = None,
        effective: Position | None = None,
        dotted: str | None = None,
        index: int | None = None,
    ) -> None:
        self.kind: BindingKind = kind
        self.name = name
        self.node = node
        self.scope = scope
        self.value = value
        self.effective = effective or start(node)
        self.dotted = dotted
        self.index = index


class Source:
    """A parsed module, indexed once."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.fields: dict[ast.AST, str] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.scope_of_function: dict[ast.AST, Scope] = {}
        self.all_scopes: list[Scope] = []
        self.calls: list[ast.Call] = []
        self.functions: list[Function] = []
        self.classes: list[ast.ClassDef] = []
        self.attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        self._bound: dict[ast.AST, Binding] = {}
        self._loop_of: dict[ast.AST, ast.AST | None] = {}
        self._reaching: dict[ast.Name, list[Binding]] = {}
        self._loads_of: dict[tuple[Scope, str], dict[Binding, list[ast.Name]]] = {}
        self.module = self._scope("module", tree, None)
        self._walk()
        for scope in self.all_scopes:
            for bindings in scope.bindings.values():
                if len(bindings) > 1:
                    bindings.sort(key=lambda b: b.effective)
        for nodes in (self.calls, self.functions, self.classes):
            nodes.sort(key=start)

    # ---------------------------------------------------------------- building

    def _scope(self, kind: str, node: ast.AST, parent: Scope | None) -> Scope:
        scope = Scope(kind, node, parent)
        self.all_scopes.append(scope)
        self.scope_of_function[node] = scope
        return scope

    def _walk(self) -> None:
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, self.module)]
        parents, fields, scopes, handlers = self.parents, self.fields, self.scopes, self._handlers
        while stack:
            node, scope = stack.pop()
            scopes[node] = scope
            cls = node.__class__
            handler = handlers.get(cls)
            if handler is not None:
                children = handler(self, node, scope)
                if children is not None:
                    for child, where, field in children:
                        parents[child] = node
                        fields[child] = field
                        stack.append((child, where))
                    continue
            names = _FIELDS.get(cls)
            if names is None:
                names = _FIELDS[cls] = tuple(f for f in cls._fields if f not in _SKIPPED)
            for field in names:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    for child in value:
                        if isinstance(child, ast.AST):
                            parents[child] = node
                            fields[child] = field
                            stack.append((child, scope))
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    fields[value] = field
                    stack.append((value, scope))

    def _bind(self, binding: Binding) -> None:
        scope = binding.scope
        if binding.name in scope.globals:
            scope = binding.scope = self.module
        elif binding.name in scope.nonlocals:
            outer = self._enclosing_with(scope, binding.name)
            scope = binding.scope = outer if outer is not None else scope
        scope.bindings.setdefault(binding.name, []).append(binding)
        self._bound[binding.node] = binding

    def _enclosing_with(self, scope: Scope, name: str) -> Scope | None:
        around = scope.parent
        while around is not None and around.kind != "module":
            if around.kind == "function" and name not in around.nonlocals and name in _own_names(around.node):
                return around
            around = around.parent
        return None

    def _bind_target(
        self, target: ast.expr, kind: BindingKind, scope: Scope, value: ast.expr | None, effective: Position
    ) -> None:
        pending: list[tuple[ast.expr, BindingKind, ast.expr | None, int | None]] = [(target, kind, value, None)]
        while pending:
            item, how, bound, index = pending.pop()
            if isinstance(item, ast.Name):
                self._bind(Binding(how, item.id, item, scope, bound, effective, index=index))
            elif isinstance(item, ast.Starred):
                pending.append((item.value, "unpack" if how == "assign" else how, None, None))
            elif isinstance(item, (ast.Tuple, ast.List)):
                parts = bound.elts if isinstance(bound, (ast.Tuple, ast.List)) else None
                pairwise = (
                    how == "assign"
                    and parts is not None
                    and len(parts) == len(item.elts)
                    and not any(isinstance(e, ast.Starred) for e in (*parts, *item.elts))
                )
                for number, element in enumerate(item.elts):
                    if pairwise and parts is not None:
                        pending.append((element, "assign", parts[number], None))
                    else:
                        pending.append((element, "unpack" if how == "assign" else how, bound, number))

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._bind_target(target, "assign", scope, node.value, end(node))

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._bind_target(node.target, "assign", scope, node.value, end(node))

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        if isinstance(node.target, ast.Name):
            self._bind(Binding("augmented", node.target.id, node.target, scope, node.value, end(node)))

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        owner = scope
        while owner.kind == "comprehension" and owner.parent is not None:
            owner = owner.parent
        self._bind(Binding("assign", node.target.id, node.target, owner, node.value, end(node)))

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        self._bind_target(node.target, "loop", scope, node.iter, end(node.iter))

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._bind_target(item.optional_vars, "with", scope, item.context_expr, end(item.optional_vars))

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self._bind(Binding("except", node.name, node, scope))

    def _match_name(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name:
            self._bind(Binding("match", node.name, node, scope))

    def _match_rest(self, node: ast.MatchMapping, scope: Scope) -> None:
        if node.rest:
            self._bind(Binding("match", node.rest, node, scope))

    def _delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(Binding("delete", target.id, target, scope, effective=end(node)))

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            if alias.asname:
                self._bind(Binding("import", alias.asname, alias, scope, dotted=alias.name))
            else:
                top = alias.name.partition(".")[0]
                self._bind(Binding("import", top, alias, scope, dotted=top))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        prefix = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                if prefix == "jax":
                    # The one star import whose content is known to matter.
                    self._bind(Binding("import", "jit", alias, scope, dotted="jax.jit"))
                    self._bind(Binding("import", "pmap", alias, scope, dotted="jax.pmap"))
                continue
            joined = prefix + alias.name if prefix.endswith(".") else f"{prefix}.{alias.name}"
            self._bind(Binding("import", alias.asname or alias.name, alias, scope, dotted=joined))

    def _global(self, node: ast.Global, scope: Scope) -> None:
        scope.globals.update(node.names)

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        scope.nonlocals.update(node.names)

    def _name(self, node: ast.Name, scope: Scope) -> None:
        if node.ctx.__class__ is ast.Load:
            loads = scope.loads.get(node.id)
            if loads is None:
                scope.loads[node.id] = [node]
            else:
                loads.append(node)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        self.attributes[node.attr].append(node)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        self.calls.append(node)

    def _type_scope(self, node: ast.AST, scope: Scope) -> tuple[Scope, list[tuple[ast.AST, Scope, str]]]:
        """The scope of PEP 695 type parameters, which sits between a definition and what surrounds it."""
        parameters = getattr(node, "type_params", None)
        if not parameters:
            return scope, []
        inner = Scope("type parameters", node, scope)
        self.all_scopes.append(inner)
        for parameter in parameters:
            self._bind(Binding("class", parameter.name, parameter, inner))
        return inner, [(p, inner, "type_params") for p in parameters]

    def _function(self, node: Function, scope: Scope) -> list[tuple[ast.AST, Scope, str]]:
        self.functions.append(node)
        children: list[tuple[ast.AST, Scope, str]] = []
        around = scope
        if not isinstance(node, ast.Lambda):
            self._bind(Binding("def", node.name, node, scope))
            children += [(d, scope, "decorator_list") for d in node.decorator_list]
            around, more = self._type_scope(node, scope)
            children += more
            if node.returns is not None:
                children.append((node.returns, around, "returns"))
        inner = self._scope("function", node, around)
        arguments = node.args
        parents, fields, scopes = self.parents, self.fields, self.scopes
        parents[arguments] = node
        fields[arguments] = "args"
        scopes[arguments] = scope
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                # Evaluated once, where the function is defined.
                children.append((default, scope, "defaults"))
        for parameter in parameters_of(node):
            self._bind(Binding("parameter", parameter.arg, parameter, inner))
            parents[parameter] = node
            fields[parameter] = "args"
            scopes[parameter] = inner
            if parameter.annotation is not None:
                children.append((parameter.annotation, around, "annotation"))
        if isinstance(node, ast.Lambda):
            children.append((node.body, inner, "body"))
        else:
            # `global` and `nonlocal` bind for the whole body, wherever they stand; see them first.
            children += [(statement, inner, "body") for statement in node.body]
            for declared in _declarations(node.body):
                if isinstance(declared, ast.Global):
                    inner.globals.update(declared.names)
                else:
                    inner.nonlocals.update(declared.names)
        return children

    def _class(self, node: ast.ClassDef, scope: Scope) -> list[tuple[ast.AST, Scope, str]]:
        self.classes.append(node)
        self._bind(Binding("class", node.name, node, scope))
        children: list[tuple[ast.AST, Scope, str]] = [(d, scope, "decorator_list") for d in node.decorator_list]
        around, more = self._type_scope(node, scope)
        children += more
        children += [(base, around, "bases") for base in node.bases]
        children += [(keyword, around, "keywords") for keyword in node.keywords]
        inner = self._scope("class", node, around)
        return children + [(statement, inner, "body") for statement in node.body]

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> list[tuple[ast.AST, Scope, str]]:
        inner = self._scope("comprehension", node, scope)
        children: list[tuple[ast.AST, Scope, str]] = []
        for number, generator in enumerate(node.generators):
            self.parents[generator] = node
            self.fields[generator] = "generators"
            self.scopes[generator] = inner
            self._bind_target(generator.target, "loop", inner, generator.iter, end(generator.iter))
            children.append((generator.iter, inner if number else scope, "iter" if number else "first iter"))
            children.append((generator.target, inner, "target"))
            children += [(test, inner, "ifs") for test in generator.ifs]
        if isinstance(node, ast.DictComp):
            children += [(node.key, inner, "key"), (node.value, inner, "value")]
        else:
            children.append((node.elt, inner, "elt"))
        return children

    _handlers: ClassVar[dict[type[ast.AST], Callable[..., Any]]] = {
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.NamedExpr: _walrus,
        ast.For: _for,
        ast.AsyncFor: _for,
        ast.With: _with,
        ast.AsyncWith: _with,
        ast.ExceptHandler: _handler,
        ast.MatchAs: _match_name,
        ast.MatchStar: _match_name,
        ast.MatchMapping: _match_rest,
        ast.Delete: _delete,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Global: _global,
        ast.Nonlocal: _nonlocal,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Call: _call,
        ast.FunctionDef: _function,
        ast.AsyncFunctionDef: _function,
        ast.Lambda: _function,
        ast.ClassDef: _class,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
    }

    # ---------------------------------------------------------------- asking

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Pairs (child, parent) from a node up to the module."""
        parents = self.parents
        while True:
            parent = parents.get(node)
            if parent is None:
                return
            yield node, parent
            node = parent

    def lookup(self, scope: Scope, name: str) -> Scope | None:
        """The scope in which a name that is loaded in `scope` is bound, or None (a builtin or a star import)."""
        current: Scope | None = scope
        first = True
        while current is not None:
            if name in current.globals:
                return self.module if name in self.module.bindings else None
            if name in current.bindings and name not in current.nonlocals and (first or current.kind != "class"):
                return current
            # A comprehension in a class body sees the class only through its first iterable, which is not in it.
            first = False
            current = current.parent
        return None

    @cached_property
    def references(self) -> dict[tuple[Scope, str], list[ast.Name]]:
        """All loads of each name, by the scope that binds it, in source order."""
        found: dict[tuple[Scope, str], list[ast.Name]] = defaultdict(list)
        for scope in self.all_scopes:
            for name, loads in scope.loads.items():
                owner = self.lookup(scope, name)
                if owner is not None:
                    found[owner, name] += loads
        for loads in found.values():
            loads.sort(key=start)
        return found

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement (or except handler, or match case) that holds a node."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
        return node

    def reaching(self, load: ast.Name) -> list[Binding]:
        """The bindings that a load may see, in source order.

        In the same flow: back from the load to the nearest binding that every path passes, with those on the way that
        some path passes. From another function: all of them, since it runs at some other time.
        """
        known = self._reaching.get(load)
        if known is None:
            known = self._reaching[load] = self._find_reaching(load)
        return known

    def _find_reaching(self, load: ast.Name) -> list[Binding]:
        scope = self.lookup(self.scopes[load], load.id)
        if scope is None:
            return []
        bindings = scope.bindings[load.id]
        if len(bindings) == 1:
            return bindings
        if self.scopes[load].function is not scope.function:
            return bindings if len(bindings) <= _MOST else bindings[-_MOST:]
        return self.reaching_at(load, bindings)

    def bound_at(self, target: ast.AST) -> list[Binding]:
        """The binding that a stored name, a definition or a parameter makes."""
        binding = self._bound.get(target)
        return [] if binding is None else [binding]

    def loads_of(self, binding: Binding) -> list[ast.Name]:
        """The loads that may see a binding, in source order."""
        key = binding.scope, binding.name
        if len(binding.scope.bindings[binding.name]) == 1:
            return self.references.get(key, [])
        seen_by = self._loads_of.get(key)
        if seen_by is None:
            seen_by = self._loads_of[key] = defaultdict(list)
            for load in self.references.get(key, ()):
                for reaching in self.reaching(load):
                    seen_by[reaching].append(load)
        return seen_by.get(binding, [])

    def loop_around(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop or comprehension that evaluates a node once per iteration, in the same function."""
        path: list[ast.AST] = []
        loop: ast.AST | None = None
        while True:
            known = self._loop_of.get(node, path)
            if known is not path:
                loop = cast("ast.AST | None", known)
                break
            path.append(node)
            parent = self.parents.get(node)
            if parent is None:
                break
            field = self.fields[node]
            if field == "body" and isinstance(parent, FUNCTIONS):
                break
            if is_repeated(parent, field):
                loop = parent
                break
            node = parent
        for passed in path:
            if isinstance(passed, ast.stmt):
                self._loop_of[passed] = loop
        return loop

    def reaching_at(self, node: ast.AST, bindings: list[Binding]) -> list[Binding]:
        """Those of `bindings` (of one name in one scope) that reach `node`, which runs in the same flow."""
        blocks = self._blocks(node)
        position = start(node)
        count = bisect_left(bindings, position, key=lambda b: b.effective)
        # A binding whose effective position is where the node begins (a loop target's) has taken effect.
        while count < len(bindings) and bindings[count].effective <= position:
            count += 1
        found: list[Binding] = []
        for index in range(count - 1, -1, -1):  # no slice: a name may have very many bindings
            binding = bindings[index]
            relation = self._relation(binding, blocks)
            if relation == "exclusive":
                continue
            found.append(binding)
            if relation == "dominates" or len(found) == _MOST:
                break
        loops = [parent for parent, field in blocks if isinstance(parent, LOOPS) and field == "body"]
        if loops:
            dominator = found[-1] if found and self._relation(found[-1], blocks) == "dominates" else None
            last = bisect_right(bindings, end(loops[-1]), key=lambda b: b.effective)
            for binding in bindings[max(count, last - _MOST) : last]:
                around = [p for p, field in self._blocks(binding.node) if field == "body"]
                for loop in loops:
                    if loop in around and not (dominator is not None and self._within(dominator.node, loop)):
                        found.append(binding)
                        break
        found.sort(key=lambda b: b.effective)
        return found

    def binds_always(self, binding: Binding, node: ast.AST) -> bool:
        """Whether every path to a node that runs in the same flow passes a binding."""
        if self.scopes[node].function is not binding.scope.function or binding.effective > start(node):
            return False
        return self._relation(binding, self._blocks(node)) == "dominates"

    def _within(self, node: ast.AST, ancestor: ast.AST) -> bool:
        return any(parent is ancestor for _, parent in self.ancestors(node))

    def _blocks(self, node: ast.AST) -> list[tuple[ast.AST, str]]:
        """The statement lists around a node, innermost first, as (owner, field), up to the function."""
        found = []
        for child, parent in self.ancestors(node):
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                found.append((parent, self.fields[child]))
                if isinstance(parent, FUNCTIONS):
                    break
        return found

    def _relation(self, binding: Binding, blocks: list[tuple[ast.AST, str]]) -> str:
        """How a binding stands to a place in the statement lists `blocks`, which comes later in the text."""
        if binding.kind == "parameter":
            return "dominates"
        node = binding.node
        own = self._blocks(node)
        if binding.kind == "loop" and own:
            # A loop's target is bound at the head of its body.
            loop = self.statement(node)
            if (loop, "body") in blocks:
                return "dominates"
            if isinstance(self.scopes[node].node, COMPREHENSIONS) and self.scopes[node].kind == "comprehension":
                return "dominates"
        if binding.kind in ("with", "except") and own:
            holder = self.statement(node) if binding.kind == "with" else node
            if (holder, "body") in blocks:
                return "dominates"
        if own and own[0] in blocks and binding.kind != "loop":
            conditional = any(isinstance(parent, (ast.BoolOp, ast.IfExp)) for parent in self._expression_parents(node))
            return "may" if conditional else "dominates"
        others = dict(blocks)
        for owner, field in own:
            other = others.get(owner)
            if other is not None and other != field and isinstance(owner, (ast.If, ast.Match)):
                return "exclusive"
        inner = {parent: None for parent, _ in own if isinstance(parent, ast.match_case)}
        if inner:
            for owner, _ in blocks:
                if isinstance(owner, ast.match_case) and owner not in inner:
                    match = self.parents[owner]
                    if any(self.parents[case] is match for case in inner):
                        return "exclusive"
        return "may"

    def _expression_parents(self, node: ast.AST) -> Iterator[ast.AST]:
        for _, parent in self.ancestors(node):
            if isinstance(parent, ast.stmt):
                return
            yield parent


def parameters_of(node: Function) -> list[ast.arg]:
    """All parameters of a function, in the order in which `ast` keeps them."""
    a = node.args
    named = [*a.posonlyargs, *a.args]
    if a.vararg:
        named.append(a.vararg)
    named += a.kwonlyargs
    if a.kwarg:
        named.append(a.kwarg)
    return named


def _declarations(body: list[ast.stmt]) -> Iterator[ast.Global | ast.Nonlocal]:
    """The `global` and `nonlocal` statements of a function's own body."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield node
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) and not isinstance(
            node, (*DEFINITIONS, ast.ClassDef)
        ):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                pending += getattr(node, field, ())


def _own_names(node: ast.AST) -> set[str]:
    """The names that a function binds itself: its parameters and what its body stores."""
    if not isinstance(node, FUNCTIONS):
        return set()
    names = {p.arg for p in parameters_of(node)}
    pending: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while pending:
        item = pending.pop()
        if isinstance(item, (*DEFINITIONS, ast.ClassDef)):
            names.add(item.name)
            continue
        if isinstance(item, ast.Lambda):
            continue
        if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load):
            names.add(item.id)
        elif isinstance(item, ast.alias):
            names.add((item.asname or item.name).partition(".")[0])
        pending += ast.iter_child_nodes(item)
    return names
