"""Can a change come between two calls of a jitted function? Then the second call still sees the old value.

A change before the first call is seen by the trace, one after the last call by nobody. In the same flow of code the
text tells the order; a loop puts its end before its beginning. What runs in another function may run at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import functions_around, loops_around
from flake8_jitcache.facts.scopes import COMPREHENSIONS, Function, Position, end, start
from flake8_jitcache.facts.uses import Use


@dataclass
class Moments:
    """When something happens, seen from one flow of code: at these nodes of it, and maybe later still, where it got
    out of sight."""

    nodes: list[ast.AST] = field(default_factory=list)
    later: bool = False


@dataclass(frozen=True)
class Life:
    """The life of a jitted function's trace. home: the function in whose calls the function object is made (None: at
    module level). kept: it outlives that call. made: where it is made. uses: where it is used. others: where the same
    function is used through another jit, which shares its trace."""

    home: Function | None
    kept: bool
    made: ast.AST
    uses: tuple[Use, ...]
    others: tuple[Use, ...] = ()


class Timing:
    """Orders uses and changes."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._source = module.source

    def is_stale(self, life: Life, change: ast.AST) -> bool:
        """Whether a call of the jitted function may come before a change and another one after it."""
        flow = self._flow(change)
        if flow is life.home:
            return self._between(life, flow, [change])
        if not life.kept:
            # It is gone when its home returns: only what its home calls can change anything for it.
            return self._between(life, life.home, self._moments([change], life.home).nodes)
        if flow is None or flow in self._around(life.home):
            return self._between(life, flow, [change])
        root = self._runs_once_in(flow)
        if root is not None:
            moments = self._moments([change], root)
            return self._between(life, root, moments.nodes)
        return True

    def is_between(self, life: Life, change: ast.AST) -> bool:
        """Whether the text shows a call of the jitted function before a change and another one after it."""
        return self._between(life, self._flow(change), [change])

    def is_read_late(self, life: Life, change: ast.AST) -> bool:
        """Whether a jitted function is made, then a change comes, and then it is handed out: its first call reads the
        changed value, and not the one that it was made with."""
        if self._flow(change) is not life.home or life.home is None:
            return False
        position = self._effective(change)
        return (
            start(life.made) < position
            and not set(loops_around(self._source, life.made)) & set(loops_around(self._source, change))
            and any(
                use.kind == "returned" and self._flow(use.node) is life.home and start(use.node) > position
                for use in life.uses
            )
        )

    def changes_under_it(self, life: Life, change: ast.AST) -> bool:
        """Whether a change and the making of the jitted function are in one loop, and what the loop makes is kept
        for later: then what was read first is the value of a later iteration."""
        loops = loops_around(self._source, life.made)
        return self._kept_in(loops, life) and any(loop in self.loops_of(change) for loop in loops)

    def _kept_in(self, loops: list[ast.AST], life: Life) -> bool:
        if not loops or any(use.kind in ("call", "staged") and self._inside(use.node, loops) for use in life.uses):
            return False
        return any(
            use.kind == "kept" and self._inside(use.node, loops) and self._is_collected(use.node) for use in life.uses
        )

    def _is_collected(self, node: ast.AST) -> bool:
        """Whether a value goes into a container, and not into an attribute or to a generator's consumer."""
        parent = self._source.parents[node]
        if isinstance(parent, ast.Assign):
            return any(isinstance(target, ast.Subscript) for target in parent.targets)
        return not isinstance(parent, (ast.Yield, ast.YieldFrom, ast.GeneratorExp, ast.arguments, ast.Lambda)) and (
            self._source.fields[node] != "defaults"
        )

    def loops_of(self, change: ast.AST) -> list[ast.AST]:
        """The loops that repeat a change; a loop's target is repeated by it."""
        found = loops_around(self._source, change)
        for child, parent in self._source.ancestors(change):
            if isinstance(parent, (ast.For, ast.AsyncFor)) and self._source.fields[child] == "target":
                found.append(parent)
            if isinstance(parent, (*COMPREHENSIONS, ast.stmt)):
                break
        return found

    # ---------------------------------------------------------------- one flow

    def _between(self, life: Life, flow: Function | None, changes: Iterable[ast.AST]) -> bool:
        used = self._moments([u.node for u in life.uses if u.kind in ("call", "staged", "passed")], flow)
        others = self._moments([u.node for u in life.others if u.kind in ("call", "staged", "passed")], flow)
        gone = self._moments([u.node for u in life.uses if u.kind in ("kept", "returned")], flow)
        later = used.later or gone.later or bool(gone.nodes)
        made = self._moments([life.made], flow).nodes
        remade = {loop for node in made for loop in loops_around(self._source, node)}
        for change in changes:
            loops = [loop for loop in self.loops_of(change) if loop not in remade]
            if any(self._inside(use, loops) for use in used.nodes):
                return True
            in_turn = [use for use in used.nodes if not self._exclude(use, change)]
            position = self._effective(change)
            before = any(
                start(use) < position and not self._inside(change, [use]) and not self._exclude(use, change)
                for use in (*in_turn, *others.nodes)
            )
            after = later or any(start(use) > position for use in in_turn)
            if before and after:
                return True
        return False

    def _effective(self, change: ast.AST) -> Position:
        """From where on a change is in effect: the value of an assignment is worked out before it."""
        statement = self._source.statement(change)
        simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        return end(statement) if simple else start(change)

    def _inside(self, node: ast.AST, holders: Iterable[ast.AST]) -> bool:
        holders = list(holders)
        return bool(holders) and any(parent in holders for _, parent in self._source.ancestors(node))

    def _exclude(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two nodes stand in branches of which only one runs."""
        branches = {parent: self._source.fields[child] for child, parent in self._source.ancestors(one)}
        for child, parent in self._source.ancestors(other):
            if parent in branches and isinstance(parent, (ast.If, ast.IfExp)):
                fields = {branches[parent], self._source.fields[child]}
                if fields == {"body", "orelse"}:
                    return True
            if isinstance(parent, ast.Match) and parent in branches and child not in branches:
                return True
        return False

    # ---------------------------------------------------------------- other flows

    def _flow(self, node: ast.AST) -> Function | None:
        around = functions_around(self._source, node)
        return around[0] if around else None

    def _around(self, function: Function | None) -> list[Function]:
        return [] if function is None else functions_around(self._source, function)

    def _moments(self, nodes: Iterable[ast.AST], flow: Function | None) -> Moments:
        """When, seen from one flow, the nodes are evaluated: through the calls of the functions that they are in."""
        found = Moments()
        pending = list(nodes)
        seen: set[ast.AST] = set()
        while pending:
            node = pending.pop()
            function = self._flow(node)
            if function is flow:
                found.nodes.append(node)
            elif function is None:
                continue  # at import, before any function runs
            elif function not in seen:
                seen.add(function)
                uses = self._module.uses.of_function(function)
                found.later = found.later or not uses or any(use.kind in ("kept", "returned") for use in uses)
                pending += [use.node for use in uses if use.kind in ("call", "staged", "passed")]
        return found

    def _runs_once_in(self, function: Function) -> Function | None:
        """The entry point of the program in whose flow a function runs, where it certainly runs in it alone."""
        seen: set[Function] = set()
        current: Function | None = function
        while current is not None and current not in seen:
            seen.add(current)
            if self._module.frequency.is_entry(current):
                return current
            uses = self._module.uses.of_function(current)
            callers = {self._flow(use.node) for use in uses}
            if not uses or any(use.kind != "call" for use in uses) or len(callers) != 1:
                return None
            current = callers.pop()
        return None
