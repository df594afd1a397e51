"""How jitted code uses a value: as an array that may be traced, or as something that must be known while tracing.

The value is followed from where it is read up through the expressions, names and functions of the file that it flows
into, until JAX takes it as an array, or Python needs to know what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from enum import IntEnum

from flake8_jitcache.facts import known
from flake8_jitcache.facts.array_functions import (
    ARRAY_ARGUMENTS,
    ARRAY_ATTRIBUTES,
    ARRAY_KEYWORDS,
    ARRAY_METHODS,
    SHAPE_FUNCTIONS,
    STATIC_ATTRIBUTES,
    STATIC_KEYWORDS,
    STATIC_POSITIONS,
)
from flake8_jitcache.facts.definitions import method_kind
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Binding, Function

_STEPS = 200
# Builtins that take a container of arrays item by item.
_ITERATES = frozenset({"sum", "zip", "enumerate", "reversed"})


class Use(IntEnum):
    """What a use needs of a value, the more demanding last."""

    ARRAY = 0  # it is an operand, so it is a number or an array, and may be traced
    TREE = 1  # it is indexed or passed on: it may be a container, or anything
    STATIC = 2  # its Python value decides: control flow, a shape, an axis, text
    CALLED = 3  # it is a function


def _is_static(node: ast.expr, call: ast.Call, keyword: str | None, dotted: frozenset[str]) -> bool:
    """Whether an argument of a function of JAX is a shape, a length or such."""
    if keyword is not None:
        return keyword in STATIC_KEYWORDS and any(name.startswith("jax.") for name in dotted)
    return node in call.args and any(call.args.index(node) in STATIC_POSITIONS.get(name, ()) for name in dotted)


def _is_pow_of_arrays(node: ast.expr, power: ast.BinOp) -> bool:
    """Whether a power of numbers is the same for JAX as for Python: `2**-1` is 0 in whole numbers of JAX."""
    if any(map(_is_float, (power.left, power.right))):
        return True
    return node is power.left and isinstance(power.right, ast.Constant) and isinstance(power.right.value, int)


def _is_float(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.UnaryOp):
        return _is_float(node.operand)
    return isinstance(node, ast.BinOp) and (
        isinstance(node.op, ast.Div) or _is_float(node.left) or _is_float(node.right)
    )


def _is_update(parents: Mapping[ast.AST, ast.AST], node: ast.Attribute) -> bool:
    """Whether an attribute is the `at` of `x.at[i].set(v)`, which arrays of JAX alone have."""
    item = parents[node]
    method = parents[item]
    return node.attr == "at" and isinstance(item, ast.Subscript) and isinstance(method, ast.Attribute)


class Uses:
    """Follows values through jitted code."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source
        self._seen: set[object] = set()
        self._proved = False

    def of(self, reads: Iterable[ast.expr], function: Function, static: frozenset[str] = frozenset()) -> Use:
        """The most demanding use that `function` makes of what `reads` evaluate to. `static` are its own parameters
        that JAX does not trace."""
        self._seen = set()
        self._proved = False
        self._function = function
        self._traced = {
            parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        } - static
        defaults = len(function.args.defaults)
        if defaults:  # a parameter that is left out keeps its default, which is not traced
            self._traced -= {p.arg for p in (*function.args.posonlyargs, *function.args.args)[-defaults:]}
        for parameter, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            if default is not None:
                self._traced.discard(parameter.arg)
        return self._proved_or_tree(max((self._of(read) for read in reads), default=Use.ARRAY))

    def _proved_or_tree(self, found: Use) -> Use:
        """Where no operand shows that a value is a number or an array, it may be anything."""
        return max(found, Use.ARRAY if self._proved else Use.TREE)

    def of_parameter(self, function: Function, name: str) -> Use:
        """The most demanding use that a function of the file makes of one of its parameters."""
        self._seen = set()
        self._function = function
        self._traced = set()
        self._proved = False
        return self._proved_or_tree(self._parameter(function, name))

    # ---------------------------------------------------------------- upwards

    def _of(self, node: ast.expr) -> Use:
        if node in self._seen:
            return Use.ARRAY
        self._seen.add(node)
        if len(self._seen) > _STEPS:
            return Use.TREE
        parent, field = self._source.parents[node], self._source.fields[node]
        if isinstance(parent, ast.BinOp):
            return self._operand(node, parent)
        if isinstance(parent, ast.UnaryOp):
            return Use.STATIC if isinstance(parent.op, ast.Not) else self._of(parent)
        if isinstance(parent, ast.Compare):
            return self._compared(node, parent)
        if isinstance(parent, ast.BoolOp):
            return Use.STATIC
        if isinstance(parent, ast.IfExp):
            return Use.STATIC if field == "test" else self._of(parent)
        if isinstance(parent, (ast.If, ast.While, ast.Assert, ast.match_case, ast.Match, ast.FormattedValue)):
            return Use.STATIC
        if isinstance(parent, ast.Return) or (isinstance(parent, ast.Lambda) and field == "body"):
            return self._returned(parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            return self._bound(parent)
        if isinstance(parent, (ast.Tuple, ast.List, ast.Dict)):
            return self._member(parent)
        if isinstance(parent, ast.Subscript):
            if field == "value":
                return max(Use.TREE, self._of(parent))
            return Use.STATIC
        if isinstance(parent, ast.Slice):
            return Use.STATIC
        if isinstance(parent, ast.Attribute):
            return self._attribute(parent)
        if isinstance(parent, ast.Call):
            return Use.CALLED if field == "func" else self._argument(node, parent, None)
        if isinstance(parent, ast.keyword):
            call = self._source.parents[parent]
            return self._argument(node, call, parent.arg) if isinstance(call, ast.Call) else Use.TREE
        if isinstance(parent, ast.Expr):
            return Use.ARRAY
        return Use.TREE if field in ("iter", "first iter") else Use.STATIC

    def _operand(self, node: ast.expr, parent: ast.BinOp) -> Use:
        other = parent.right if parent.left is node else parent.left
        if isinstance(other, (ast.List, ast.Tuple, ast.JoinedStr)) or (
            isinstance(other, ast.Constant) and isinstance(other.value, (str, bytes))
        ):
            return Use.STATIC
        if isinstance(parent.op, ast.Pow) and not self._is_traced(other) and not _is_pow_of_arrays(node, parent):
            return Use.STATIC
        self._proved = True
        return Use.ARRAY if self._is_traced(other) else self._of(parent)

    def _compared(self, node: ast.expr, parent: ast.Compare) -> Use:
        others = [part for part in (parent.left, *parent.comparators) if part is not node]
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops):
            none = all(isinstance(other, ast.Constant) and other.value is None for other in others)
            return Use.ARRAY if none else Use.STATIC
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in parent.ops) or len(parent.ops) > 1:
            return Use.STATIC
        if any(isinstance(other, ast.Constant) and isinstance(other.value, str) for other in others):
            return Use.STATIC
        self._proved = self._proved or not all(isinstance(op, (ast.Eq, ast.NotEq)) for op in parent.ops)
        return Use.ARRAY if all(self._is_traced(other) for other in others) else self._of(parent)

    def _returned(self, node: ast.Return | ast.Lambda) -> Use:
        function: ast.AST = node
        if isinstance(node, ast.Return):
            function = next(p for _, p in self._source.ancestors(node) if isinstance(p, FUNCTIONS))
        if function is self._function:
            self._proved = True  # what a jitted function returns is an array
            return Use.ARRAY
        if function in self._entered and isinstance(function, FUNCTIONS):
            calls = self._module.definitions.calls_of(function)
            return max((self._of(call) for call in calls), default=Use.TREE)
        return Use.TREE

    def _bound(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign) -> Use:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found = Use.ARRAY
        for target in targets:
            if not isinstance(target, ast.Name):
                return Use.TREE
            found = max(found, self._name(target))
        if isinstance(node, ast.NamedExpr):
            found = max(found, self._of(node))
        return found

    def _name(self, target: ast.Name) -> Use:
        scope = self._source.scopes[target]
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        found = Use.ARRAY
        for binding in scope.bindings.get(target.id, ()):
            if binding.node is target:
                for load in self._source.references.get((scope, target.id), ()):
                    if binding in self._source.reaching(load):
                        found = max(found, self._of(load))
        return found

    def _member(self, node: ast.expr) -> Use:
        """A value put into a tuple, list or dict: fine where JAX takes the whole as a tree of arrays."""
        parent = self._source.parents[node]
        if isinstance(parent, ast.Call) and isinstance(node, (ast.Tuple, ast.List)):
            return self._argument(node, parent, None)
        if isinstance(parent, ast.keyword) and isinstance(node, (ast.Tuple, ast.List)):
            call = self._source.parents[parent]
            return self._argument(node, call, parent.arg) if isinstance(call, ast.Call) else Use.STATIC
        if isinstance(parent, (ast.Return, ast.Lambda, ast.Tuple, ast.List, ast.Dict)):
            return self._of(node)
        return Use.STATIC

    def _attribute(self, node: ast.Attribute) -> Use:
        if node.attr in STATIC_ATTRIBUTES:
            return Use.ARRAY  # known while tracing, of a traced value too
        parent = self._source.parents[node]
        method = node.attr in ARRAY_METHODS and isinstance(parent, ast.Call) and parent.func is node
        if node.attr not in ARRAY_ATTRIBUTES and not method:
            return Use.CALLED
        proved = self._proved  # what others have such an attribute of, too, proves nothing of its owner
        found = Use.ARRAY if node.attr == "at" else self._of(parent if method else node)  # type: ignore[arg-type]
        self._proved = proved or _is_update(self._source.parents, node)
        return found

    # ---------------------------------------------------------------- into calls

    def _argument(self, node: ast.expr, call: ast.Call, keyword: str | None) -> Use:
        dotted = self._module.names.dotted(call.func)
        if dotted & (known.TRANSFORMS | known.PARTIALS) and call.args and call.args[0] is node:
            return Use.CALLED
        if _is_static(node, call, keyword, dotted):
            return Use.STATIC
        if dotted and all(name.startswith("jax.") for name in dotted) and dotted <= ARRAY_ARGUMENTS.keys():
            if keyword is not None:
                return self._operand_of_jax() if keyword in ARRAY_KEYWORDS else Use.STATIC
            if any(isinstance(argument, ast.Starred) for argument in call.args):
                return Use.TREE
            allowed = min(ARRAY_ARGUMENTS[name] for name in dotted)
            if call.args.index(node) >= allowed:
                return Use.STATIC
            return Use.ARRAY if any(name.startswith("jax.tree") for name in dotted) else self._operand_of_jax()
        if dotted <= SHAPE_FUNCTIONS | {"len"} and dotted:
            return Use.ARRAY
        if dotted == {"abs"}:
            return self._of(call)
        if dotted and dotted <= _ITERATES:
            return Use.TREE
        if dotted and all(name.partition(".")[0] in ("numpy", "math") or "." not in name for name in dotted):
            return Use.STATIC
        functions = self._module.definitions.functions(call.func)
        if len(functions) == 1 and not dotted:
            return self._into(node, call, keyword, functions[0])
        if isinstance(call.func, ast.Attribute) and not dotted and call.func.attr in ARRAY_METHODS:
            if keyword is None and node in call.args and call.args.index(node) < ARRAY_METHODS[call.func.attr]:
                return self._operand_of_jax()
            return Use.STATIC
        if isinstance(call.func, ast.Call) and call.func.args:
            wrapped = self._module.names.dotted(call.func.func)
            inner = self._module.definitions.functions(call.func.args[0])
            if wrapped & known.TRANSFORMS and len(inner) == 1 and keyword is None and node in call.args:
                return self._into(node, call, keyword, inner[0])
        return Use.TREE

    def _operand_of_jax(self) -> Use:
        """JAX takes it as an array, and would refuse anything else."""
        self._proved = True
        return Use.ARRAY

    def _into(self, node: ast.expr, call: ast.Call, keyword: str | None, function: Function) -> Use:
        """A value that is passed to a function of this file: follow the parameter."""
        if isinstance(function, DEFINITIONS):
            if class_of(self._source, function) is not None and method_kind(function, self._module.names) != "static":
                return Use.TREE
            for decorator in function.decorator_list:
                if self._module.jits.maker(decorator) is None or isinstance(decorator, ast.Call):
                    return Use.TREE
        name = keyword
        if name is None:
            if node not in call.args or any(isinstance(argument, ast.Starred) for argument in call.args):
                return Use.TREE
            parameters = [*function.args.posonlyargs, *function.args.args]
            index = call.args.index(node)
            if index >= len(parameters):
                return Use.TREE
            name = parameters[index].arg
        return self._parameter(function, name)

    def _parameter(self, function: Function, name: str) -> Use:
        scope = self._source.scope_of_function[function]
        bindings = [b for b in scope.bindings.get(name, ()) if b.kind == "parameter"]
        if not bindings:
            return Use.TREE
        if bindings[0] in self._seen:
            return Use.ARRAY
        self._seen.add(bindings[0])
        self._entered.add(function)
        return max((self._of(load) for load in self._loads(bindings[0])), default=Use.ARRAY)

    @property
    def _entered(self) -> set[object]:
        return self._seen  # functions and nodes are told apart by identity

    def _loads(self, binding: Binding) -> list[ast.Name]:
        loads = self._source.references.get((binding.scope, binding.name), [])
        return [load for load in loads if binding in self._source.reaching(load)]

    # ---------------------------------------------------------------- what is traced anyway

    def _is_traced(self, node: ast.expr) -> bool:
        """Whether an expression in the jitted function surely is a tracer: made of its traced parameters, or by JAX."""
        if isinstance(node, ast.Name):
            return self._is_traced_name(node)
        if isinstance(node, ast.BinOp):
            return self._is_traced(node.left) or self._is_traced(node.right)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._is_traced(node.operand)
        if isinstance(node, ast.Attribute):
            return node.attr in ("T", "mT", "real", "imag") and self._is_traced(node.value)
        if isinstance(node, ast.Subscript):
            return self._is_traced(node.value)
        if isinstance(node, ast.Call):
            dotted = self._module.names.dotted(node.func)
            if dotted:
                return (
                    all(name.startswith("jax.") for name in dotted)
                    and dotted <= {name for name in ARRAY_ARGUMENTS if not name.startswith("jax.tree")}
                    and not dotted & SHAPE_FUNCTIONS
                )
            if isinstance(node.func, ast.Attribute) and node.func.attr in ARRAY_METHODS:
                return self._is_traced(node.func.value)
        return False

    def _is_traced_name(self, node: ast.Name) -> bool:
        owner = self._source.lookup(self._source.scopes[node], node.id)
        if owner is None or owner is not self._source.scope_of_function[self._function]:
            return False
        bindings = self._source.reaching(node)
        return bool(bindings) and all(
            (b.kind == "parameter" and b.name in self._traced)
            or (b.kind == "assign" and b.value is not None and b.value is not node and self._traces(b))
            for b in bindings
        )

    def _traces(self, binding: Binding) -> bool:
        key = ("traces", id(binding))
        if key in self._seen or binding.value is None:
            return False
        self._seen.add(key)
        try:
            return self._is_traced(binding.value)
        finally:
            self._seen.discard(key)
