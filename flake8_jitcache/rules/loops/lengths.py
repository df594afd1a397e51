"""Which arrays have a length that changes with a loop: slices with a moving end, and arrays made to a length."""

from __future__ import annotations

import ast

from flake8_jitcache.facts.constants import only_value
from flake8_jitcache.facts.iterations import LoopVariable
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import loops_around

# Makers of arrays, and which of their arguments is the shape or the length.
_BY_SHAPE = dict.fromkeys("ones zeros empty full eye identity".split(), 0)
_BY_SHAPE |= {"linspace": 2, "logspace": 2, "geomspace": 2, "broadcast_to": 1, "tile": 1, "repeat": 1}
_SHAPE_KEYWORDS = frozenset({"shape", "num", "N", "reps", "repeats"})
_RANDOM = frozenset("normal uniform bernoulli randint exponential gumbel laplace truncated_normal".split())
# Functions whose result is as long as their first argument.
_AS_LONG = frozenset("array asarray copy abs exp log sqrt square cumsum flip sort negative".split())
_METHODS = frozenset("copy astype block_until_ready".split())
_FAR = 10.0**6


class Lengths:
    """Finds arrays whose length changes with a loop around a place."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source

    def changing(self, node: ast.expr, place: ast.AST, depth: int = 0) -> list[LoopVariable]:
        """The loop variables with which the length of an array expression changes on each iteration."""
        if depth > 6:
            return []
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found = [v for part in parts if isinstance(part, ast.Slice) for v in self._slice(part, place)]
            return found or self._nested(node, place, depth)
        if isinstance(node, (ast.Tuple, ast.List)):
            return [v for element in node.elts for v in self.changing(element, place, depth + 1)]
        if isinstance(node, ast.Name):
            return self._name(node, place, depth)
        if isinstance(node, ast.Call):
            return self._call(node, place, depth)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                return self._module.iterations.changing(node.right, place)
            return self.changing(node.left, place, depth + 1) + self.changing(node.right, place, depth + 1)
        if isinstance(node, ast.UnaryOp):
            return self.changing(node.operand, place, depth + 1)
        return []

    def _nested(self, node: ast.Subscript, place: ast.AST, depth: int) -> list[LoopVariable]:
        """For `x[:n][mask, :]`: a full slice keeps the length of what it slices."""
        whole = isinstance(node.slice, ast.Slice) and node.slice.lower is None and node.slice.upper is None
        return self.changing(node.value, place, depth + 1) if whole else []

    def _name(self, node: ast.Name, place: ast.AST, depth: int) -> list[LoopVariable]:
        bindings = self._source.reaching(node)
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].index is not None:
            return []
        binding = bindings[0]
        inside = set(loops_around(self._source, binding.node)) & set(loops_around(self._source, place))
        if not inside or binding.value is None:
            return []
        return self.changing(binding.value, place, depth + 1)

    def _call(self, node: ast.Call, place: ast.AST, depth: int) -> list[LoopVariable]:
        changing = self._module.iterations.changing
        for dotted in self._module.names.dotted(node.func):
            library, _, name = dotted.rpartition(".")
            if library not in ("numpy", "jax.numpy", "jax.random"):
                continue
            if library == "jax.random":
                shape = _argument(node, 1, frozenset({"shape"})) if name in _RANDOM else None
                return [] if shape is None else changing(shape, place)
            if name == "arange":
                return self._range(node, place)
            if name in _BY_SHAPE:
                shape = _argument(node, _BY_SHAPE[name], _SHAPE_KEYWORDS)
                return [] if shape is None else changing(shape, place)
            if name in _AS_LONG and node.args:
                return self.changing(node.args[0], place, depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return self.changing(node.func.value, place, depth + 1)
        return []

    def _range(self, node: ast.Call, place: ast.AST) -> list[LoopVariable]:
        ends = node.args[:2]
        if len(ends) == 1:
            return self._module.iterations.changing(ends[0], place)
        return self._difference(ends[0], ends[1], place) if len(ends) == 2 else []

    def _slice(self, part: ast.Slice, place: ast.AST) -> list[LoopVariable]:
        return self._difference(part.lower, part.upper, place)

    def _difference(self, lower: ast.expr | None, upper: ast.expr | None, place: ast.AST) -> list[LoopVariable]:
        """The variables with which the distance of two ends changes; `x[i : i + width]` has one length."""
        changing = self._module.iterations.changing
        variables = [v for end in (lower, upper) if end is not None for v in changing(end, place)]
        if not variables:
            return []
        first, second = (self._distance(lower, upper, {v.name: value for v in variables}) for value in (5.0, 7.0))
        return [] if first is None or second is None or abs(first - second) < 1e-6 else variables

    def _distance(self, lower: ast.expr | None, upper: ast.expr | None, trial: dict[str, float]) -> float | None:
        low = 0.0 if lower is None else self._trial(lower, trial, 0)
        high = _FAR if upper is None else self._trial(upper, trial, 0)
        return None if low is None or high is None else high - low

    def _trial(self, node: ast.expr, trial: dict[str, float], depth: int) -> float | None:
        """The value of an end for trial values of the loop variables. What is not arithmetic stands for some number
        that stays the same, unless a loop variable is in it: then nothing is known."""
        if depth > 12:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            if node.id in trial:
                return trial[node.id]
            bound = only_value(self._source, node)
            if bound is not None and any(isinstance(n, ast.Name) and n.id in trial for n in ast.walk(bound)):
                return self._trial(bound, trial, depth + 1)
            return _stands_for(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            operand = self._trial(node.operand, trial, depth + 1)
            return None if operand is None else -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp):
            left, right = self._trial(node.left, trial, depth + 1), self._trial(node.right, trial, depth + 1)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, (ast.Div, ast.FloorDiv)) and right:
                return left / right
        if any(isinstance(n, ast.Name) and n.id in trial for n in ast.walk(node)):
            return None
        return _stands_for(ast.unparse(node))


def _argument(call: ast.Call, position: int, keywords: frozenset[str]) -> ast.expr | None:
    if position < len(call.args):
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg in keywords), None)


def _stands_for(text: str) -> float:
    return 100.0 + sum(number * ord(letter) for number, letter in enumerate(text, 3)) % 997
