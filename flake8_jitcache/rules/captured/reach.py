"""What a jitted function runs when it is traced: its body, and what that calls in the same file, to a fixpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import method_kind
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Binding, Definition, Function, Scope
from flake8_jitcache.facts.targets import returns_of

# Calls that run their function on the host, at each call of the jitted function: what it reads is never stale.
HOST_CALLS = frozenset(
    {
        "jax.pure_callback",
        "jax.debug.callback",
        "jax.experimental.io_callback",
        "jax.experimental.host_callback.call",
        "jax.experimental.host_callback.id_tap",
        "jax.experimental.pure_callback",
    }
)


@dataclass(frozen=True)
class Root:
    """A function of the file that a jit traces. `bound`: its first parameter is an object that is not an argument."""

    function: Function
    bound: bool = False


@dataclass
class Region:
    """The functions that one trace runs, and which of their first parameters are objects from outside the trace."""

    functions: set[Function] = field(default_factory=set)
    captured: set[Function] = field(default_factory=set)


class Reach:
    """Regions of one module. What a function calls is worked out once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._definitions = module.definitions
        self._edges: dict[Function, list[tuple[Function, Function | None, bool]]] = {}

    # ---------------------------------------------------------------- roots

    def roots(self, creation: Creation) -> list[Root]:
        """The functions of the file that a creation jits."""
        definition = creation.definition
        if definition is not None:
            return [Root(definition, self._has_static_self(creation, definition))]
        found: dict[Function, Root] = {}
        for root in self._behind(creation.target, set()):
            if isinstance(root.function, DEFINITIONS) and not root.bound:
                root = Root(root.function, self._has_static_self(creation, root.function))
            found.setdefault(root.function, root)
        return list(found.values())

    def _has_static_self(self, creation: Creation, function: Definition) -> bool:
        """Whether a jitted method takes `self` as a static argument."""
        if class_of(self._source, function) is None or method_kind(function, self._module.names) != "instance":
            return False
        first = [*function.args.posonlyargs, *function.args.args][:1]
        statics = self._module.signatures.statics(creation)
        return bool(first) and statics is not None and (0 in statics.positions or first[0].arg in statics.keywords)

    def _behind(self, node: ast.AST | None, seen: set[ast.AST]) -> Iterator[Root]:
        """The functions that run when the value of an expression is called."""
        if node is None or node in seen or len(seen) > 60:
            return
        seen.add(node)
        if isinstance(node, ast.Lambda):
            yield Root(node)
        elif isinstance(node, ast.Name):
            for binding in self._source.reaching(node):
                if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
                    yield Root(binding.node)
                elif binding.kind == "assign":
                    yield from self._behind(binding.value, seen)
                elif binding.kind == "parameter":
                    yield from self._handed_in(binding, seen)
        elif isinstance(node, ast.Attribute):
            method = self._definitions.method_of(node)
            if method is not None:
                yield Root(method, self._is_bound(node, method))
        elif isinstance(node, ast.Call):
            yield from self._behind_call(node, seen)
        elif isinstance(node, ast.IfExp):
            yield from self._behind(node.body, seen)
            yield from self._behind(node.orelse, seen)
        elif isinstance(node, ast.NamedExpr):
            yield from self._behind(node.value, seen)

    def _behind_call(self, node: ast.Call, seen: set[ast.AST]) -> Iterator[Root]:
        dotted = self._module.names.dotted(node.func)
        wraps = (
            dotted & (known.TRANSFORMS | known.PARTIALS | known.SHELLS)
            or self._module.jits.maker(node.func) is not None
            or (isinstance(node.func, ast.Call) and "functools.wraps" in self._module.names.dotted(node.func.func))
        )
        if wraps:
            if node.args:
                yield from self._behind(node.args[0], seen)
            return
        for function in self._definitions.functions(node.func):
            returned = [function.body] if isinstance(function, ast.Lambda) else list(returns_of(function))
            for value in returned:
                yield from self._behind(value, seen)

    def _handed_in(self, binding: Binding, seen: set[ast.AST]) -> Iterator[Root]:
        """For a jitted parameter: the functions that callers in this file pass for it."""
        function = binding.scope.node
        if isinstance(function, FUNCTIONS):
            for call in self._definitions.calls_of(function):
                if function in self._definitions.functions(call.func):
                    yield from self._behind(self._definitions.argument(call, function, binding.name), seen)

    def _is_bound(self, node: ast.Attribute, method: Definition) -> bool:
        return method_kind(method, self._module.names) in ("instance", "property") and not self._definitions.is_class(
            node.value
        )

    # ---------------------------------------------------------------- regions

    def region(self, root: Root) -> Region:
        """What the trace of a root runs."""
        region = Region()
        pending = [(root.function, root.bound)]
        while pending:
            function, bound = pending.pop()
            if function in region.functions and (not bound or function in region.captured):
                continue
            region.functions.add(function)
            if bound:
                region.captured.add(function)
            for callee, owner, is_method in self._calls(function):
                if self._is_cached(callee):
                    continue  # plain Python would keep its old value as well
                # A method looked up on an object from outside has that object as its `self`.
                outside = is_method and (owner is None or owner not in region.functions or owner in region.captured)
                pending.append((callee, outside))
        return region

    def _is_cached(self, function: Function) -> bool:
        caches = self._module.caches
        return isinstance(function, DEFINITIONS) and any(map(caches.is_cache, function.decorator_list))

    def _calls(self, function: Function) -> list[tuple[Function, Function | None, bool]]:
        """What a function refers to in the file: (function, the function whose parameter or local is its receiver,
        whether it has one)."""
        known_edges = self._edges.get(function)
        if known_edges is None:
            known_edges = self._edges[function] = list(self._find_calls(function))
        return known_edges

    def _find_calls(self, function: Function) -> Iterator[tuple[Function, Function | None, bool]]:
        for name, loads in self.loads_in(function):
            if name not in self._callable_names:
                continue
            for load in loads:
                for binding in self._source.reaching(load):
                    yield from self._refers(load, binding)
        for scope in self.scopes_in(function):
            if scope.kind == "function":
                yield scope.node, None, False  # type: ignore[misc]

    def _refers(self, load: ast.Name, binding: Binding) -> Iterator[tuple[Function, Function | None, bool]]:
        if self._is_host_call(load):
            return
        if binding.kind in ("def", "assign"):
            for found in self._definitions.of_binding(binding):
                yield found, None, False
        parent = self._source.parents[load]
        if isinstance(parent, ast.Attribute):
            method = self._definitions.method_of(parent)
            if method is not None:
                yield method, binding.scope.function, self._is_bound(parent, method)
        elif isinstance(parent, ast.Call) and parent.func is load:
            owner = self._definitions.class_behind(load)
            if owner is not None:
                method = self._definitions.method(owner, "__init__" if binding.kind == "class" else "__call__")
                if method is not None:
                    yield method, binding.scope.function, binding.kind != "class"

    @cached_property
    def _callable_names(self) -> set[str]:
        """The names through which code of the file can refer to functions of it: of defs, of classes, and of what is
        assigned a function or an instance; and first parameters, for methods."""
        names: set[str] = set()
        for scope in self._source.all_scopes:
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    if binding.kind in ("def", "class") or (
                        binding.kind == "assign"
                        and isinstance(binding.value, (ast.Lambda, ast.Name, ast.Attribute, ast.IfExp, ast.Call))
                    ):
                        names.add(name)
        for function in self._source.functions:
            if isinstance(function, DEFINITIONS):
                names.update(p.arg for p in [*function.args.posonlyargs, *function.args.args][:1])
        return names

    # ---------------------------------------------------------------- walking

    @cached_property
    def _inner(self) -> dict[Scope, list[Scope]]:
        inner: dict[Scope, list[Scope]] = {}
        for scope in self._source.all_scopes:
            if scope.parent is not None:
                inner.setdefault(scope.parent, []).append(scope)
        return inner

    def scopes_in(self, function: Function) -> Iterator[Scope]:
        """The scopes of a function's body, and of the functions in it that are traced with it."""
        pending = [self._source.scope_of_function[function]]
        while pending:
            scope = pending.pop()
            if scope.kind == "function" and scope.node is not function and self._runs_on_host(scope.node):
                continue
            yield scope
            pending += self._inner.get(scope, ())

    def loads_in(self, function: Function) -> Iterator[tuple[str, list[ast.Name]]]:
        """The names that a function's body loads, with their loads."""
        for scope in self.scopes_in(function):
            yield from scope.loads.items()

    def _runs_on_host(self, function: ast.AST) -> bool:
        if isinstance(function, ast.Lambda):
            return self._is_host_call(function)
        if not isinstance(function, DEFINITIONS):
            return False
        uses = self._definitions.uses(function)
        return bool(uses) and all(self._is_host_call(use) for use in uses)

    def _is_host_call(self, node: ast.expr) -> bool:
        """Whether an expression is the function that a host callback gets."""
        parent = self._source.parents[node]
        if isinstance(parent, ast.keyword):
            if parent.arg not in ("callback", "host_func"):
                return False
            parent = self._source.parents[parent]
            return isinstance(parent, ast.Call) and bool(self._module.names.dotted(parent.func) & HOST_CALLS)
        return (
            isinstance(parent, ast.Call)
            and parent.args[:1] == [node]
            and bool(self._module.names.dotted(parent.func) & HOST_CALLS)
        )
