"""How traces and compiles are counted against the limits of a guard."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from pytest_jitcache import report
from pytest_jitcache.guard.options import Options
from pytest_jitcache.identity import is_nested
from pytest_jitcache.recorder import Trace


class Counting:
    """Counts the traces and the compiles of each function apart, or of all that one place makes; and of each signature apart.

    Attributes:
        alerts: the groups that went over their limit, each as soon as it did: "traced" or "compiled", and the group.

    Args:
        options: of the guard.
        named: the code of the jitted functions that the guard names.
    """

    def __init__(self, options: Options, named: frozenset[CodeType]) -> None:
        self.alerts: list[tuple[str, list[Trace]]] = []
        self._per = options.per
        self._named = named
        self._allowed = {"traced": options.max_traces, "compiled": options.max_compiles}
        self._groups: dict[str, dict[object, list[Trace]]] = {"traced": {}, "compiled": {}}
        self._clears: dict[CodeType, int] = {}
        self._homes: dict[object, list[tuple[Callable[[], Any], object]]] = {}

    def allowed(self, verb: str, group: list[Trace]) -> int:
        """How many there may be in a group: after another guard has cleared a cache, one at the least."""
        cleared = any(code in self._clears for code in group[-1].codes)
        return max(self._allowed[verb] or 0, 1 if cleared else 0)

    def cleared(self, codes: frozenset[CodeType]) -> None:
        """The caches of these functions have been cleared: the next trace of one starts a new count."""
        for code in codes:
            self._clears[code] = self._clears.get(code, 0) + 1

    def add(self, trace: Trace, verb: str) -> None:
        """Count a trace ("traced") or a compile ("compiled")."""
        which = self._which(trace)
        keys: list[object] = [None] if self._per == "total" else [trace.signature.key]
        if self._per != "total" and trace.signature.default_key != trace.signature.key:
            keys.append(trace.signature.default_key)
        for key in keys:
            group = self._groups[verb].setdefault((which, key), [])
            group.append(trace)
            if len(group) > self.allowed(verb, group):
                trace.cause = report.nearest(group, verb)[1][0].title
                self.alerts.append((verb, group))

    def first_alert(self) -> tuple[str, list[Trace]]:
        """The first group that went over its limit."""
        verb = self.alerts[0][0]
        return verb, _outermost([group for other, group in self.alerts if other == verb])[0]

    def worst(self) -> tuple[str, list[Trace]] | None:
        """The largest of the groups that are over their limit, traces before compiles."""
        for verb, groups in self._groups.items():
            if self._allowed[verb] is None:
                continue
            over = [group for group in self._across_threads(groups) if len(group) > self.allowed(verb, group)]
            if over:
                return verb, max(_outermost(over), key=len)
        return None

    def _which(self, trace: Trace) -> object:
        """Which function it is a trace of."""
        clears = tuple(self._clears.get(code, 0) for code in trace.codes)
        cache = trace.cache if self._per != "definition" else (trace.layers, trace.traced_for, trace.filtered)
        return (cache, trace.stage == "transpose", clears, self._outer(trace))

    def _outer(self, trace: Trace) -> object:
        """Which trace of which function it is part of, if it comes anew with each of those."""
        outer = trace.around if trace.inline_of is None else trace.inside
        if trace.inline_of is not None:
            return outer and (self._which(outer), outer.signature.key)
        if not self._may_be_made_inside(trace):
            return None
        return self._home(trace, outer and (self._which(outer), outer.signature.key))

    def _home(self, trace: Trace, outer: object) -> object:
        """The trace in which a function was traced first: one that lives on after it was not made anew with the next."""
        function = trace.ref()
        if function is None:
            return outer
        homes = self._homes.setdefault(trace.object_id, [])
        for ref, home in homes:
            if ref() is function:
                return home
        homes[:] = [one for one in homes if one[0]() is not None]
        homes.append((trace.ref, outer))
        return outer

    def _across_threads(self, groups: dict[object, list[Trace]]) -> list[list[Trace]]:
        """The groups; functions made anew on several threads at a time, all of them gone by now, are one function."""
        together: dict[object, list[list[Trace]]] = {}
        for group in groups.values():
            first = group[0]
            if first.inline_of is None:
                around = self._outer(first)
                together.setdefault((first.layers, first.traced_for, first.signature.key, around), []).append(group)
        merged = list(groups.values())
        for several in together.values():
            gone = [t for group in several for t in group if t.ref() is None]
            threads = {t.thread for t in gone}
            if len(several) > 1 and len(threads) > 1:
                merged.append(sorted({id(t): t for t in gone}.values(), key=lambda t: t.number))
        return merged

    def _may_be_made_inside(self, trace: Trace) -> bool:
        """Whether what is traced inside another trace may be made there, so that it is traced once for each trace of that."""
        if self._named.intersection(trace.codes):
            return False
        return not (trace.kinds[:1] in (("function",), ("lambda",)) and trace.codes and not is_nested(trace.codes[0]))


def _outermost(groups: list[list[Trace]]) -> list[list[Trace]]:
    """The groups without those that follow from another one, because they are traced inside its last trace."""
    last = {id(group[-1]) for group in groups}

    def follows(group: list[Trace]) -> bool:
        outer = group[-1].inside
        while outer is not None and id(outer) not in last:
            outer = outer.inside
        return outer is not None

    return [group for group in groups if not follows(group)] or groups
