"""Which functions of a file run traced: what is jitted or handed to a `lax` loop, and what only they call.

A jit made while something around it is traced costs nothing: it is traced inline, once. An eager `vmap` or `grad` keeps
no trace, so what only runs under one of them is not traced code.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import cast

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import Definitions, method_kind
from flake8_jitcache.facts.jits import Jits
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import class_of, functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition, Function, Source

# Of a function that is called from more places, or a class that has more subclasses, the first ones are looked at.
_MANY = 200
# Methods of a module that train or evaluate it are no part of the model.
_DRIVERS = frozenset({"fit", "train", "evaluate", "eval", "run", "main", "test", "predict", "sample", "generate"})


class Traced:
    """The functions of a file that run traced."""

    def __init__(self, source: Source, names: Names, jits: Jits, definitions: Definitions) -> None:
        self._source = source
        self._names = names
        self._jits = jits
        self._definitions = definitions
        self.functions: set[Function] = set()
        self._find()

    def is_traced(self, node: ast.AST) -> bool:
        """Whether a node runs inside a function that is traced."""
        return any(function in self.functions for function in functions_around(self._source, node))

    def inside(self, expression: ast.AST | None) -> list[Function]:
        """The functions of the file that run when the value of an expression is called: through transforms, partials,
        wrappers and names."""
        found: list[Function] = []
        pending = [expression]
        seen: set[ast.AST] = set()
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, DEFINITIONS):
                found.append(node)
            elif isinstance(node, ast.Call):
                if node.args and self._wraps(node):
                    pending.append(node.args[0])
            elif isinstance(node, ast.Name):
                functions = self._definitions.functions(node)
                found += functions
                pending += [b.value for b in self._source.reaching(node) if b.kind == "assign"]
            elif isinstance(node, ast.Lambda):
                found.append(node)
            elif isinstance(node, ast.Attribute):
                found += self._methods(node)
            elif isinstance(node, (ast.List, ast.Tuple)):
                pending += node.elts
            elif isinstance(node, ast.IfExp):
                pending += [node.body, node.orelse]
        return found

    def _wraps(self, call: ast.Call) -> bool:
        dotted = self._names.dotted(call.func)
        if dotted & known.TRANSFORMS or dotted & known.PARTIALS or dotted & known.SHELLS:
            return True
        if self._jits.maker(call.func) is not None:
            return True
        return isinstance(call.func, ast.Call) and "functools.wraps" in self._names.dotted(call.func.func)

    def _methods(self, node: ast.Attribute) -> list[Function]:
        method = self._definitions.method_of(node)
        if method is not None:
            return [method]
        if self._definitions.class_behind(node.value) is not None or self._names.dotted(node):
            return []
        # An object of unknown class: every method of that name in the file may be meant.
        return [f for f in self._by_name.get(node.attr, ()) if class_of(self._source, f) is not None]

    def _find(self) -> None:
        self._by_name: dict[str, list[Function]] = {}
        for function in self._source.functions:
            if isinstance(function, DEFINITIONS):
                self._by_name.setdefault(function.name, []).append(function)
        for creation in self._jits.creations:
            self.functions.update(self.inside(creation.target))
            self.functions.update(self._handed_in(creation.target))
        for function in self._source.functions:
            if isinstance(function, DEFINITIONS) and (
                any(map(self._is_like_jit, function.decorator_list)) or _is_kernel(function)
            ):
                self.functions.add(function)
        for call in self._source.calls:
            if call.args and self._is_like_jit(call.func):
                self.functions.update(self.inside(call.args[0]))
            dotted = self._names.dotted(call.func)
            if any(known.TRACING.fullmatch(name) for name in dotted):
                for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                    self.functions.update(self.inside(given))
            for name in dotted & known.CONTROL_FLOW.keys():
                for index in known.CONTROL_FLOW[name]:
                    if index < len(call.args):
                        self.functions.update(self.inside(call.args[index]))
                for keyword in call.keywords:
                    if keyword.arg in known.CONTROL_FLOW_KEYWORDS:
                        self.functions.update(self.inside(keyword.value))
        for cls in self._source.classes:
            self.functions.update(s for s in cls.body if isinstance(s, DEFINITIONS) and self._is_hook(s))
            if cls.bases and self._definitions.bases(cls) & known.TRACED_BASES:
                self.functions.update(s for s in cls.body if isinstance(s, DEFINITIONS) and self._in_transform(s))
            elif cls.bases and self._definitions.bases(cls) & known.LAYER_BASES:
                self.functions.update(s for s in cls.body if isinstance(s, DEFINITIONS) and self._is_of_layer(s))
        self._spread()

    def _is_like_jit(self, node: ast.expr) -> bool:
        """Whether something is named like a jit: what nobody knows by that name traces its function as well."""
        if isinstance(node, ast.Call):
            node = node.func
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        return bool(known.LIKE_JIT.fullmatch(name))

    def _in_transform(self, method: Definition) -> bool:
        """Whether a method of a module runs inside `apply` or a jitted step: not where it calls that itself, or drives."""
        words = method.name.strip("_").split("_")
        if words[0] in _DRIVERS:
            return False
        return method_kind(method, self._names) == "instance" and not any(
            isinstance(node, ast.Attribute) and node.attr in ("apply", "init", "bind", "init_with_output")
            for node in ast.walk(method)
        )

    def _is_hook(self, method: Definition) -> bool:
        """Whether a private method that nothing in the file mentions is for a base of another file to call: that base
        says whether it is traced."""
        owner = class_of(self._source, method)
        if owner is None or not method.name.startswith("_") or method.name.startswith("__"):
            return False
        if method.name.strip("_").split("_")[0] not in known.STEP_WORDS:
            return False
        local = self._definitions.bases(owner) - {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
        return bool(local) and not self._definitions.uses(method)

    def _is_of_layer(self, method: Definition) -> bool:
        """Whether a method of an equinox or nnx module is what a step of somebody calls: not one that drives steps
        itself (`fit`, `evaluate`, `plot`)."""
        drives = method.name.strip("_").split("_")[0] in known.DRIVING_METHODS
        return self._in_transform(method) and not drives

    def _handed_in(self, target: ast.AST | None) -> list[Function]:
        """For a jitted parameter: the functions that callers in this file pass for it."""
        if not isinstance(target, ast.Name):
            return []
        found: list[Function] = []
        for binding in self._source.reaching(target):
            function = binding.scope.node
            if binding.kind == "parameter" and isinstance(function, (*DEFINITIONS, ast.Lambda)):
                for call in self._definitions.calls_of(function)[:_MANY]:
                    found += self.inside(self._definitions.argument(call, function, binding.name))
        return found

    def _spread(self) -> None:
        """Add what is only ever called from traced code (by a transform too), to a fixpoint.

        Functions are taken by their uses, which methods of one name share: `waiting` counts those not yet seen to be
        calls from traced code. A function's calls of itself count for nothing.
        """
        sharing: dict[int, list[Function]] = {}
        waiting: dict[int, int] = {}
        used_in: dict[Function, list[int]] = {}
        for function in self._source.functions:
            uses = self._definitions.uses(function)
            key = id(uses)
            sharing.setdefault(key, []).append(function)
            if key in waiting:
                continue
            outer = [use for use in uses if function not in functions_around(self._source, use)]
            around = [self._source.scopes[use].function for use in outer]
            if outer and all(self._is_call(use) for use in outer) and None not in around:
                waiting[key] = len(outer)
                for user in around:
                    used_in.setdefault(cast(Function, user), []).append(key)
            else:
                waiting[key] = 0  # never
        pending = list(self.functions)
        covered: set[Function] = set()
        while pending:
            function = pending.pop()
            self.functions.add(function)
            pending += [method for method in self._overrides(function) if method not in self.functions]
            for scope in self._source.scope_of_function[function].within():
                inner = scope.function
                if inner is None or inner in covered:
                    continue
                covered.add(inner)
                for key in used_in.get(inner, ()):
                    waiting[key] -= 1
                    if waiting[key] == 0:
                        pending += sharing[key]

    def _overrides(self, function: Function) -> list[Function]:
        """The methods of classes of this file that override a method: where it is traced, so are they."""
        owner = class_of(self._source, function)
        if owner is None or not isinstance(function, DEFINITIONS):
            return []
        found: list[Function] = []
        pending = list(self._subclasses.get(owner, ()))
        seen: set[ast.ClassDef] = set()
        while pending and len(seen) < _MANY:
            cls = pending.pop()
            if cls in seen:
                continue
            seen.add(cls)
            bindings = self._source.scope_of_function[cls].bindings.get(function.name, ())
            found += [b.node for b in bindings if isinstance(b.node, DEFINITIONS)]
            pending += self._subclasses.get(cls, ())
        return found

    @cached_property
    def _subclasses(self) -> dict[ast.ClassDef, list[ast.ClassDef]]:
        found: dict[ast.ClassDef, list[ast.ClassDef]] = {}
        for cls in self._source.classes:
            for base in cls.bases:
                for binding in self._source.reaching(base) if isinstance(base, ast.Name) else ():
                    if isinstance(binding.node, ast.ClassDef):
                        found.setdefault(binding.node, []).append(cls)
        return found

    def _is_call(self, use: ast.expr) -> bool:
        """Whether a use of a function calls it, itself or through a transform."""
        parent = self._source.parents.get(use)
        if not isinstance(parent, ast.Call):
            return False
        if parent.func is use:
            return True
        if not self._names.dotted(parent.func) & known.CALLERS:
            return False
        # `self.buffer.size`: most likely the method of another class.
        named = isinstance(use, ast.Name) or (isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name))
        return named or bool(self._definitions.functions(use))


def _is_kernel(function: Definition) -> bool:
    """Whether a function is a kernel of pallas: it takes references, by the names of its parameters."""
    names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    return len(names) > 1 and sum(name.endswith("_ref") for name in names) > 1
