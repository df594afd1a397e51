"""Question 3, first half: where is a node evaluated? Once per import, per call of a function, per loop iteration."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.scopes import COMPREHENSIONS, FUNCTIONS, LOOPS, Function, Source


@dataclass(frozen=True)
class Place:
    """The innermost function whose body evaluates a node, and the innermost loop in it (or at module level)."""

    function: Function | None
    loop: ast.AST | None


def is_repeated(parent: ast.AST, field: str) -> bool:
    """Whether a child in this field of a loop or comprehension is evaluated once per iteration."""
    if isinstance(parent, LOOPS):
        return field == "body" or (field == "test" and isinstance(parent, ast.While))
    return isinstance(parent, COMPREHENSIONS) and field != "first iter"


def place_of(source: Source, node: ast.AST) -> Place:
    """Where a node is evaluated. A decorator or a default is evaluated where its function is defined."""
    loop: ast.AST | None = None
    for child, parent in source.ancestors(node):
        field = source.fields[child]
        if isinstance(parent, FUNCTIONS):
            if field == "body":
                return Place(parent, loop)
        elif loop is None and is_repeated(parent, field):
            loop = parent
    return Place(None, loop)


def loops_around(source: Source, node: ast.AST) -> list[ast.AST]:
    """The loops that evaluate a node once per iteration, innermost first, up to the function."""
    found = []
    for child, parent in source.ancestors(node):
        field = source.fields[child]
        if isinstance(parent, FUNCTIONS):
            if field == "body":
                break
        elif is_repeated(parent, field):
            found.append(parent)
    return found


def functions_around(source: Source, node: ast.AST) -> list[Function]:
    """The functions in whose bodies a node stands, innermost first."""
    found: list[Function] = []
    for child, parent in source.ancestors(node):
        if isinstance(parent, FUNCTIONS) and source.fields[child] == "body":
            found.append(parent)
    return found


def class_of(source: Source, function: ast.AST) -> ast.ClassDef | None:
    """The class whose body defines a function, or None."""
    for _, parent in source.ancestors(function):
        if isinstance(parent, ast.ClassDef):
            return parent
        if isinstance(parent, FUNCTIONS):
            return None
    return None


def in_name_guard(source: Source, node: ast.AST) -> bool:
    """Whether a node stands under `if __name__ == "__main__"`."""
    for child, parent in source.ancestors(node):
        if isinstance(parent, ast.If) and source.fields[child] == "body":
            test = parent.test
            if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
                return True
    return False


def describe_loop(loop: ast.AST) -> str:
    """How to speak of a loop."""
    kind = "comprehension" if isinstance(loop, COMPREHENSIONS) else "loop"
    return f"the {kind} in line {loop.lineno}"  # type: ignore[attr-defined]
