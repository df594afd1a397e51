"""Answers that are found once, by a search that may come upon its own question."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Answers(Generic[Answer]):
    """The answers to one question about nodes. Where a search asks for a node that is being searched, it gets `unknown`."""

    def __init__(self, find: Callable[[ast.AST], Answer], unknown: Answer) -> None:
        self._find = find
        self._unknown = unknown
        self._known: dict[ast.AST, Answer] = {}
        self._searched: set[ast.AST] = set()
        self._circles = 0

    def of(self, node: ast.AST) -> Answer:
        """The answer for a node."""
        known = self._known.get(node)
        if known is not None:
            return known
        if node in self._searched:
            self._circles += 1
            return self._unknown
        circles = self._circles
        self._searched.add(node)
        try:
            found = self._find(node)
        finally:
            self._searched.discard(node)
        if circles == self._circles or not self._searched:  # inside a circle, an answer is not the whole answer
            self._known[node] = found
        return found
