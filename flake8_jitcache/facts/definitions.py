"""Which function or class of this file an expression refers to, and who refers to a function."""

from __future__ import annotations

import ast
from typing import Literal, cast

from flake8_jitcache.facts.circles import Answers
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import class_of, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, Binding, Definition, Function, Source

MethodKind = Literal["instance", "class", "static", "property"]


class Definitions:
    """Resolves names and attributes to the functions and classes of one file."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source = source
        self.names = names
        self._functions: Answers[list[Function]] = Answers(self._find_functions, [])
        self._bases: dict[ast.ClassDef, frozenset[str]] = {}
        self._held: dict[tuple[ast.ClassDef, str], ast.ClassDef | None] = {}
        self._behind: dict[ast.expr, ast.ClassDef | None] = {}
        self._uses: dict[Function, list[ast.expr]] = {}
        # By the identity of a list of uses, which methods of one name share.
        self._calls: dict[int, list[ast.Call]] = {}
        self._meant: dict[int, dict[Function, list[ast.expr]]] = {}

    # ---------------------------------------------------------------- forward

    def functions(self, node: ast.AST) -> list[Function]:
        """The functions of this file that an expression may stand for (methods included)."""
        return [node] if isinstance(node, ast.Lambda) else self._functions.of(node)

    def _find_functions(self, node: ast.AST) -> list[Function]:
        if isinstance(node, ast.Name):
            found: list[Function] = []
            for binding in self.source.reaching(node):
                found += self.of_binding(binding)
            return found
        if isinstance(node, ast.Attribute):
            method = self.method_of(node)
            return [] if method is None else [method]
        if isinstance(node, ast.IfExp):
            return self.functions(node.body) + self.functions(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.functions(node.value)
        return []

    def of_binding(self, binding: Binding) -> list[Function]:
        """The functions of this file that one binding gives its name."""
        if binding.kind == "def" and isinstance(binding.node, DEFINITIONS):
            return [binding.node]
        if binding.kind == "assign" and isinstance(
            binding.value, (ast.Lambda, ast.Name, ast.Attribute, ast.IfExp, ast.NamedExpr)
        ):
            return self.functions(binding.value)
        return []

    def method_of(self, node: ast.Attribute) -> Definition | None:
        """The method that `receiver.name` looks up, where the receiver's class is in this file."""
        owner = self.class_behind(node.value)
        return None if owner is None else self.method(owner, node.attr)

    def class_behind(self, receiver: ast.expr) -> ast.ClassDef | None:
        """The class in this file whose attributes `receiver.x` reads: `receiver` is the class or an instance."""
        if receiver not in self._behind:
            self._behind[receiver] = self._find_class_behind(receiver)
        return self._behind[receiver]

    def _find_class_behind(self, receiver: ast.expr) -> ast.ClassDef | None:
        if isinstance(receiver, ast.Name):
            for binding in self.source.reaching(receiver):
                if binding.kind == "class" and isinstance(binding.node, ast.ClassDef):
                    return binding.node
                if binding.kind == "parameter" and isinstance(binding.scope.node, DEFINITIONS):
                    owner = self.class_of_receiver(binding) or self._class_of_annotation(binding)
                    if owner is not None:
                        return owner
                if binding.kind == "assign" and isinstance(binding.value, ast.Call):
                    made = self.class_of_call(binding.value)
                    if made is not None:
                        return made
        if isinstance(receiver, ast.Call):
            if isinstance(receiver.func, ast.Name) and receiver.func.id == "super":
                return self._base_of_super(receiver)
            return self.class_of_call(receiver)
        if isinstance(receiver, ast.Attribute) and isinstance(receiver.value, ast.Name):
            return self._class_of_attribute(receiver)
        return None

    def _class_of_annotation(self, parameter: Binding) -> ast.ClassDef | None:
        """The class that a parameter is annotated with."""
        annotation = getattr(parameter.node, "annotation", None)
        name = annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            bindings = self.source.module.bindings.get(annotation.value, [])
        elif isinstance(name, ast.Name):
            bindings = self.source.reaching(name)
        else:
            return None
        return next((b.node for b in bindings if isinstance(b.node, ast.ClassDef)), None)

    def _class_of_attribute(self, attribute: ast.Attribute) -> ast.ClassDef | None:
        """The class of what `self.x` holds, where all that the class assigns to it in the file is of one class."""
        owner = self.class_behind(attribute.value)
        if owner is None:
            return None
        key = owner, attribute.attr
        if key not in self._held:
            self._held[key] = None  # a circle has no answer
            self._held[key] = self._find_held(owner, attribute.attr)
        return self._held[key]

    def _find_held(self, owner: ast.ClassDef, name: str) -> ast.ClassDef | None:
        found: set[ast.ClassDef | None] = set()
        for store in self.source.attributes.get(name, ()):
            if not isinstance(store.ctx, ast.Store) or not isinstance(store.value, ast.Name):
                continue
            if self.class_behind(store.value) is not owner:
                continue
            statement = self.source.parents[store]
            value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(value, ast.Call):
                found.add(self.class_of_call(value))
            elif isinstance(value, ast.Name):
                found.add(self.class_behind(value))
            else:
                found.add(None)
        for statement in owner.body:
            declared = isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            if declared and statement.target.id == name and isinstance(statement.annotation, ast.Name):  # type: ignore[attr-defined]
                bindings = self.source.reaching(statement.annotation)  # type: ignore[attr-defined]
                found.add(next((b.node for b in bindings if isinstance(b.node, ast.ClassDef)), None))
        return found.pop() if len(found) == 1 else None

    def _base_of_super(self, call: ast.Call) -> ast.ClassDef | None:
        """The class of this file in which `super()` begins to look, where the class has one base."""
        function = place_of(self.source, call).function
        owner = None if function is None else class_of(self.source, function)
        if owner is None or call.args or len(owner.bases) != 1:
            return None
        base = owner.bases[0]
        bindings = self.source.reaching(base) if isinstance(base, ast.Name) else []
        return next((b.node for b in bindings if isinstance(b.node, ast.ClassDef)), None)

    def class_of_receiver(self, parameter: Binding) -> ast.ClassDef | None:
        """The class of which a parameter is `self` or `cls`."""
        function = parameter.scope.node
        if not isinstance(function, DEFINITIONS) or method_kind(function, self.names) == "static":
            return None
        first = [*function.args.posonlyargs, *function.args.args][:1]
        if not first or first[0] is not parameter.node:
            return None
        return class_of(self.source, function)

    def class_of_call(self, call: ast.Call) -> ast.ClassDef | None:
        """The class in this file that a call makes an instance of."""
        if isinstance(call.func, ast.Name):
            for binding in self.source.reaching(call.func):
                if binding.kind == "class" and isinstance(binding.node, ast.ClassDef):
                    return binding.node
        return None

    def method(self, owner: ast.ClassDef, name: str) -> Definition | None:
        """A method of a class or of one of its bases in this file."""
        seen: set[ast.AST] = set()
        pending = [owner]
        while pending:
            cls = pending.pop(0)
            if cls in seen:
                continue
            seen.add(cls)
            scope = self.source.scope_of_function[cls]
            for binding in reversed(scope.bindings.get(name, [])):
                if isinstance(binding.node, DEFINITIONS):
                    if _is_accessor(binding.node):
                        continue  # the property of that name is what a lookup runs
                    return binding.node
                found = [f for f in self.of_binding(binding) if isinstance(f, DEFINITIONS)]
                return found[0] if found else None
            for base in cls.bases:
                if isinstance(base, ast.Name):
                    pending += [b.node for b in self.source.reaching(base) if isinstance(b.node, ast.ClassDef)]
        return None

    def bases(self, cls: ast.ClassDef) -> frozenset[str]:
        """The dotted names of a class's bases, followed through the classes of this file."""
        known = self._bases.get(cls)
        if known is not None:
            return known
        found: set[str] = set()
        seen: set[ast.AST] = set()
        pending = [cls]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self._bases:
                found |= self._bases[current]
                continue
            for base in current.bases:
                found |= self.names.dotted(base.value if isinstance(base, ast.Subscript) else base)
                if isinstance(base, ast.Name):
                    pending += [b.node for b in self.source.reaching(base) if isinstance(b.node, ast.ClassDef)]
        self._bases[cls] = frozenset(found)
        return self._bases[cls]

    # ---------------------------------------------------------------- backward

    def uses(self, function: Function) -> list[ast.expr]:
        """The expressions in this file that refer to a function by its name: loads of it, and attributes of that name
        for a method, whatever their receiver."""
        known = self._uses.get(function)
        if known is None:
            known = self._uses[function] = self._find_uses(function)
        return known

    def _find_uses(self, function: Function) -> list[ast.expr]:
        source = self.source
        if isinstance(function, ast.Lambda):
            return [
                load for b in self.names_of_lambda(function) for load in source.references.get((b.scope, b.name), [])
            ]
        owner = class_of(source, function)
        if owner is not None:
            return cast("list[ast.expr]", source.attributes.get(function.name, []))
        scope = source.scopes[function]
        if function.name in scope.globals:
            scope = source.module
        return cast("list[ast.expr]", source.references.get((scope, function.name), []))

    def names_of_lambda(self, node: ast.Lambda) -> list[Binding]:
        """The bindings that give a lambda its name (`f = lambda: ...`)."""
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.Assign):
            return [
                b
                for target in parent.targets
                if isinstance(target, ast.Name)
                for b in self.source.scopes[parent].bindings.get(target.id, [])
                if b.value is node
            ]
        return []

    def calls_of(self, function: Function) -> list[ast.Call]:
        """The calls in this file of a function, as far as its name tells."""
        uses = self.uses(function)
        known = self._calls.get(id(uses))
        if known is None:
            parents = ((use, self.source.parents.get(use)) for use in uses)
            known = [parent for use, parent in parents if isinstance(parent, ast.Call) and parent.func is use]
            self._calls[id(uses)] = known
        return known

    def products(self, function: Function) -> list[ast.expr]:
        """The uses of a function that stand for it and, as far as can be told, not for another one of its name."""
        uses = self.uses(function)
        meant = self._meant.get(id(uses))
        if meant is None:
            meant = self._meant[id(uses)] = {}
            for use in uses:
                for resolved in self.functions(use):
                    meant.setdefault(resolved, []).append(use)
        return meant.get(function, [])

    def argument(self, call: ast.Call, function: Function, parameter: str) -> ast.expr | None:
        """What a call passes for a parameter; None where it is left out or can't be told."""
        positional = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if (
            isinstance(call.func, ast.Attribute)
            and isinstance(function, DEFINITIONS)
            and class_of(self.source, function) is not None
            and method_kind(function, self.names) != "static"
            and not self.is_class(call.func.value)
        ):
            positional = positional[1:]
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        if parameter in positional:
            index = positional.index(parameter)
            before = call.args[: index + 1]
            if len(before) == index + 1 and not any(isinstance(a, ast.Starred) for a in before):
                return before[index]
        return None

    def is_class(self, receiver: ast.expr) -> bool:
        """Whether an expression is the name of a class of this file."""
        return isinstance(receiver, ast.Name) and any(b.kind == "class" for b in self.source.reaching(receiver))

    def caller(self, node: ast.AST) -> Function | None:
        """The function whose body evaluates a node."""
        return place_of(self.source, node).function


def method_kind(function: Definition, names: Names) -> MethodKind:
    """How a method binds, by its decorators. Meaningful for functions of a class body only."""
    for decorator in function.decorator_list:
        dotted = names.dotted(decorator)
        if "staticmethod" in dotted or "abc.abstractstaticmethod" in dotted:
            return "static"
        if "classmethod" in dotted or "abc.abstractclassmethod" in dotted:
            return "class"
        if "property" in dotted or "abc.abstractproperty" in dotted:
            return "property"
    return "class" if function.name == "__init_subclass__" else "static" if function.name == "__new__" else "instance"


def _is_accessor(method: Definition) -> bool:
    """Whether a method is the setter or deleter of a property."""
    return any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in method.decorator_list)


def last_part(dotted: str) -> str:
    """The last part of a dotted name."""
    return dotted.rpartition(".")[2]
