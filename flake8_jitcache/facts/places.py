"""Question 3, first half: where is a node evaluated? Once per import, per call of a function, per loop iteration."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from flake8_jitcache.facts.scopes import COMPREHENSIONS, FUNCTIONS, Binding, Function, Scope, Source


@dataclass(frozen=True)
class Place:
    """The innermost function whose body evaluates a node, and the innermost loop in it (or at module level)."""

    function: Function | None
    loop: ast.AST | None


def place_of(source: Source, node: ast.AST) -> Place:
    """Where a node is evaluated. A decorator or a default is evaluated where its function is defined."""
    return Place(source.scopes[node].function, source.loop_around(node))


def loops_around(source: Source, node: ast.AST) -> list[ast.AST]:
    """The loops that evaluate a node once per iteration, innermost first, up to the function."""
    found = []
    loop = source.loop_around(node)
    while loop is not None:
        found.append(loop)
        loop = source.loop_around(loop)
    return found


def functions_around(source: Source, node: ast.AST) -> list[Function]:
    """The functions in whose bodies a node stands, innermost first."""
    found: list[Function] = []
    scope: Scope | None = source.scopes[node]
    while scope is not None and scope.function is not None:
        found.append(scope.function)
        scope = source.scope_of_function[scope.function].parent
    return found


def is_bound_in(source: Source, binding: Binding, loop: ast.AST) -> bool:
    """Whether a loop or comprehension binds a name anew on each iteration."""
    if isinstance(loop, COMPREHENSIONS):
        return source.scope_of_function.get(loop) is binding.scope
    if isinstance(binding.node, FUNCTIONS) and binding.node.lineno < loop.lineno:  # type: ignore[attr-defined]
        return False
    statement = source.statement(binding.node)
    return statement is loop or loop in loops_around(source, binding.node)


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
