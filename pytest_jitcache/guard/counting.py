"""How traces and compiles are counted against the limits of a guard."""

from __future__ import annotations

from types import CodeType

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
            over = [group for group in _across_threads(groups) if len(group) > self.allowed(verb, group)]
            if over:
                return verb, max(_outermost(over), key=len)
        return None

    def _which(self, trace: Trace) -> object:
        """Which function it is a trace of."""
        clears = tuple(self._clears.get(code, 0) for code in trace.codes)
        cache = trace.cache if self._per != "definition" else (trace.layers, trace.traced_for, trace.filtered)
        which: object = (cache, trace.stage == "transpose", clears)
        outer = trace.around if trace.inline_of is None else trace.inside
        if outer is not None and (trace.inline_of is not None or self._made_inside(trace)):
            which = (which, self._which(outer), outer.signature.key)
        return which

    def _made_inside(self, trace: Trace) -> bool:
        """Whether what was traced inside another trace was made there, so that it is traced once for each trace of that."""
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


def _across_threads(groups: dict[object, list[Trace]]) -> list[list[Trace]]:
    """The groups; functions made anew on several threads at a time, all of them gone by now, are one function."""
    together: dict[object, list[list[Trace]]] = {}
    for group in groups.values():
        first = group[0]
        if first.inline_of is None:
            together.setdefault((first.layers, first.traced_for, first.signature.key), []).append(group)
    merged = list(groups.values())
    for several in together.values():
        gone = [t for group in several for t in group if t.ref() is None]
        threads = {t.thread for t in gone}
        if len(several) > 1 and len(threads) > 1:
            merged.append(sorted({id(t): t for t in gone}.values(), key=lambda t: t.number))
    return merged
