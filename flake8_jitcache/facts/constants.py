"""What an expression is worth before the program runs: numbers, strings and displays of them, through names bound once."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from flake8_jitcache.facts.scopes import Source

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_MAKERS: dict[str, Callable[..., Any]] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset, "len": len}
_LARGEST = 1000  # nothing longer is worked out: a lint run computes no big tables


class Unknown(Exception):
    """An expression whose value the file does not tell."""


def value_of(source: Source, node: ast.expr) -> Any:
    """The value of a constant expression. Raises Unknown where the file does not tell it."""
    try:
        return _Evaluation(source).value(node, {})
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Unknown from error


def value_with(source: Source, node: ast.expr, known: dict[str, float]) -> Any:
    """The value of an expression where some names, by themselves, have the given values. Raises Unknown."""
    try:
        return _Evaluation(source).value(node, known)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Unknown from error


def only_value(source: Source, node: ast.Name) -> ast.expr | None:
    """The expression that a name is bound to, where it is bound only once in its scope."""
    scope = source.lookup(source.scopes[node], node.id)
    bindings = [] if scope is None else scope.bindings[node.id]
    if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].index is None:
        return bindings[0].value
    return None


class _Evaluation:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._steps = 0

    def value(self, node: ast.expr, known: dict[str, float]) -> Any:
        self._steps += 1
        if self._steps > _LARGEST:
            raise Unknown
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in known:
                return known[node.id]
            bound = only_value(self._source, node)
            if bound is None:
                raise Unknown
            return self.value(bound, known)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            operand = self.value(node.operand, known)
            return -operand if isinstance(node.op, ast.USub) else +operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self.value(node.left, known), self.value(node.right, known)
            if isinstance(node.op, ast.Mult) and not (
                isinstance(left, (int, float)) and isinstance(right, (int, float))
            ):
                raise Unknown
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            made = [self.value(element, known) for element in node.elts]
            return tuple(made) if isinstance(node, ast.Tuple) else set(made) if isinstance(node, ast.Set) else made
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node, node.func, known)
        raise Unknown

    def _call(self, node: ast.Call, function: ast.Name, known: dict[str, float]) -> Any:
        if self._source.lookup(self._source.scopes[function], function.id) is not None:
            raise Unknown  # not the builtin
        arguments = [self.value(argument, known) for argument in node.args]
        if function.id == "range":
            made = range(*arguments)
            if len(made) > _LARGEST:
                raise Unknown
            return made
        if function.id in _MAKERS and len(arguments) <= 1:
            return _MAKERS[function.id](*arguments)
        raise Unknown
