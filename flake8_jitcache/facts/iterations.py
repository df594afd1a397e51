"""What changes from one iteration of a loop to the next: the loop's variable, and arithmetic on it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.facts.constants import Unknown, only_value, value_of
from flake8_jitcache.facts.places import loops_around
from flake8_jitcache.facts.scopes import COMPREHENSIONS, Binding, Source

# Arithmetic under which a new number stays a new number; `%`, comparisons and `min` may give few values again.
_CARRIES_ON = (ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.LShift, ast.Div, ast.FloorDiv)
_CONVERSIONS = frozenset({"int", "float", "str", "abs", "tuple", "repr"})
# Iterators that give back what they are given, item by item.
_PASS_ON = frozenset({"reversed", "sorted", "list", "tuple", "iter", "enumerate", "set", "tqdm", "trange"})


@dataclass(frozen=True)
class LoopVariable:
    """A name that a loop gives another value on each iteration. `iterable`: what a `for` loop runs over; `index`: the
    variable's place in an unpacked item."""

    name: str
    loop: ast.AST
    iterable: ast.expr | None
    index: int | None = None


class Iterations:
    """Answers about the loops of one file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def changing(self, node: ast.expr, place: ast.AST) -> list[LoopVariable]:
        """The loop variables with which the value of an expression changes on each iteration of a loop around
        `place`. Empty where it does not, or may not: an attribute of the loop variable can be the same each time."""
        loops = loops_around(self._source, place)
        return self._changing(node, loops, 0) if loops else []

    def _changing(self, node: ast.expr, loops: list[ast.AST], depth: int) -> list[LoopVariable]:
        if depth > 8:
            return []
        if isinstance(node, ast.Name):
            return self._of_name(node, loops, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _CARRIES_ON):
            return self._changing(node.left, loops, depth + 1) + self._changing(node.right, loops, depth + 1)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self._changing(node.operand, loops, depth + 1)
        if isinstance(node, ast.Tuple):
            return [v for element in node.elts for v in self._changing(element, loops, depth + 1)]
        if isinstance(node, ast.JoinedStr):
            parts = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
            return [v for part in parts for v in self._changing(part, loops, depth + 1)]
        if isinstance(node, ast.Call) and self._is_conversion(node):
            return self._changing(node.args[0], loops, depth + 1)
        return []

    def _is_conversion(self, node: ast.Call) -> bool:
        function = node.func
        return (
            isinstance(function, ast.Name)
            and function.id in _CONVERSIONS
            and len(node.args) == 1
            and self._source.lookup(self._source.scopes[function], function.id) is None
        )

    def _of_name(self, node: ast.Name, loops: list[ast.AST], depth: int) -> list[LoopVariable]:
        bindings = self._source.reaching(node)
        found: list[LoopVariable] = []
        for binding in bindings:
            loop = self.loop_of(binding)
            if loop is not None and loop in loops:
                found.append(LoopVariable(node.id, loop, binding.value, binding.index))
            elif binding.kind == "augmented" or _steps_itself(binding):
                around = loops_around(self._source, binding.node)
                counted = next((one for one in loops if one in around), None)
                if counted is not None:
                    found.append(LoopVariable(node.id, counted, None))
            elif binding.kind == "assign" and binding.value is not None and len(bindings) == 1:
                around = loops_around(self._source, binding.node)
                if around and around[0] in loops:
                    found += self._changing(binding.value, loops, depth + 1)
        return found

    def loop_of(self, binding: Binding) -> ast.AST | None:
        """The loop or comprehension whose target a binding is."""
        if binding.kind != "loop":
            return None
        for _, parent in self._source.ancestors(binding.node):
            if isinstance(parent, (ast.For, ast.AsyncFor, *COMPREHENSIONS)):
                return parent
        return None

    def is_few(self, variable: LoopVariable, limit: int) -> bool:
        """Whether a loop variable takes no more than `limit` values, or the keys or values of a dict: names of
        things, not numbers that count."""
        if variable.iterable is None:
            return False
        if _is_view(variable.iterable):
            return True
        count = self.count(variable)
        return count is not None and count <= limit

    def count(self, variable: LoopVariable) -> int | None:
        """How many values a loop variable takes, where the file tells it."""
        return None if variable.iterable is None else self._length(variable.iterable, variable.index)

    def _length(self, node: ast.expr, index: int | None = None) -> int | None:
        """How many items an expression gives, where the file tells it; with an index, how many values that part of
        the items takes."""
        try:
            return len(value_of(self._source, node))
        except (Unknown, TypeError):
            pass
        if isinstance(node, ast.Name):
            bound = only_value(self._source, node)
            return None if bound is None or isinstance(bound, ast.Name) else self._length(bound, index)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)
        if isinstance(node, ast.Dict):
            return None if any(key is None for key in node.keys) else len(node.keys)
        return self._length_of_call(node, index) if isinstance(node, ast.Call) else None

    def _length_of_call(self, node: ast.Call, index: int | None) -> int | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if _is_view(node) and isinstance(node.func, ast.Attribute):
            return self._length(node.func.value)
        if name == "product" and index is not None and index < len(node.args) and not node.keywords:
            return self._length(node.args[index])
        if name == "zip":
            lengths = [length for a in node.args if (length := self._length(a)) is not None]
            return min(lengths, default=None)
        return self._length(node.args[0]) if name in _PASS_ON and node.args else None


def _is_view(node: ast.expr) -> bool:
    """Whether an expression is a dict's keys, values or items."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("items", "keys", "values")
        and not node.args
    )


def _steps_itself(binding: Binding) -> bool:
    """Whether a binding is `n = n + 1`."""
    value = binding.value
    return (
        binding.kind == "assign"
        and isinstance(value, ast.BinOp)
        and isinstance(value.op, _CARRIES_ON)
        and any(isinstance(side, ast.Name) and side.id == binding.name for side in (value.left, value.right))
    )
