"""The summary: the table at the end of a run of pytest, or of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_jitcache.causes.kinds import TRANSFORMS
from pytest_jitcache.places import show as show_path
from pytest_jitcache.suite.options import Settings
from pytest_jitcache.suite.rules import is_on
from pytest_jitcache.suite.totals import FunctionTotals, Totals


class Terminal(Protocol):
    """What is written to: pytest's own reporter, or the standard error of a program that is watched."""

    @property
    def hasmarkup(self) -> bool: ...

    @property
    def verbosity(self) -> int: ...

    def write(self, content: str, **markup: bool) -> None: ...

    def write_line(self, line: str, **markup: bool) -> None: ...

    def write_sep(self, sep: str, title: str) -> None: ...


FUNCTIONS = 20  # that are listed where no other number is given
_BAR = 10
_WRAPPERS = {*TRANSFORMS, "partial", "bound method", "callable object"}


def show(terminal: Terminal, totals: Totals, limit: int) -> None:
    """The section of the summary, or one line where there is nothing to say."""
    if totals.empty:
        terminal.write_line("jitcache: nothing was traced or compiled in this run.")
        return
    if terminal.verbosity < -1:
        terminal.write_line(f"jitcache: {headline(totals)}")
        return
    terminal.write_sep("=", "jitcache: tracing and compiling")
    terminal.write_line(headline(totals), bold=True)
    functions = totals.worst()
    wasted = sum(f.wasted for f in functions)
    if wasted:
        seconds = sum(f.wasted_seconds for f in functions)
        concerned = sum(bool(f.wasted) for f in functions)
        terminal.write_line(
            f"wasted: {_seconds(seconds)} on {_many(wasted, 'trace')} that had been made before, "
            f"of {_many(concerned, 'function')}",
            yellow=True,
        )
    operations = totals.worst_operations()
    if operations:
        spent, compiles = sum(one.cost for one in operations), sum(one.compiles for one in operations)
        most = ", ".join(f"{one.name} {_seconds(one.cost)}" for one in operations[:3])
        terminal.write_line(
            f"JAX's own operations outside of your jitted functions: {_seconds(spent)} in {_many(compiles, 'compile')}, most for {most}"
        )
    if functions:
        _table(terminal, functions[:limit])
        if len(functions) > limit:
            rest = sum(f.cost for f in functions[limit:])
            terminal.write_line(f"... and {_many(len(functions) - limit, 'more function')} for {_seconds(rest)}")


def headline(totals: Totals) -> str:
    """Where the time went, in one line."""
    seconds = totals.seconds
    spent = sum(seconds.values())
    # threads side by side spend more seconds than pass
    side_by_side = f" on several threads, in {_seconds(totals.busy)}" if totals.busy < 0.9 * spent else ""
    share = f"{side_by_side}, {100 * totals.busy / totals.wall:.0f} % of {_seconds(totals.wall)}" if totals.wall else ""
    if totals.workers:
        share += f" in {_many(totals.workers, 'worker')}"
    return (
        f"{_seconds(spent)}{share}: tracing {_seconds(seconds['trace'])}, lowering {_seconds(seconds['lower'])}, "
        f"compiling {_seconds(seconds['compile'])} ({_many(totals.compiles, 'compile')})"
    )


def _table(terminal: Terminal, functions: Sequence[FunctionTotals]) -> None:
    bars = terminal.hasmarkup
    most = max(f.cost for f in functions) or 1.0
    head = f"{'seconds':>8}  {'traces':>6}  {'signatures':>10}  {'wasted':>6}  {'wasted s':>8}  {'compiles':>8}  {'tests':>5}  function"
    terminal.write_line("")
    terminal.write_line(" " * (_BAR + 1) * bars + head, bold=True)
    for total in functions:
        if bars:
            terminal.write(f"{_bar(total.cost / most):<{_BAR}} ", cyan=True)
        terminal.write(
            f"{total.cost:8.3f}  {total.traces:6}  {len(total.signatures):10}  {total.wasted:6}  {total.wasted_seconds:8.3f}  "
            f"{total.compiles:8}  {len(total.tests):5}  ",
            yellow=bool(total.wasted),
        )
        terminal.write_line(label(total))
        if terminal.verbosity >= 0:
            for line in _details(total):
                terminal.write_line(" " * (_BAR + 1) * bars + " " * 10 + line)


def label(total: FunctionTotals) -> str:
    """A function by name, with what the user has wrapped around it, and its place."""
    f = total.function
    name = f.qualname.replace(".<locals>", "") or f.name
    wrapper = next((kind for kind in f.kinds[:-1] if kind in _WRAPPERS), None)
    shown = f"{wrapper}({name})" if wrapper else name
    return f"{shown}  {show_path(f.filename)}:{f.line}"


def _details(total: FunctionTotals) -> list[str]:
    lines = []
    if total.wasted:
        (cause, rule), _ = max(total.causes.items(), key=lambda item: item[1])
        asked = "" if rule is None or is_on(rule) else " where that is asked for"
        found = f"; flake8 finds it as {rule}{asked}" if rule else ""
        lines.append(f"traced again: {cause}{found}")
    if len(total.signatures) > 2 and total.varies:
        lines.append(total.varies)
    tests = sorted(total.tests, key=lambda test: -total.tests[test])
    named = [test or "collection" for test in tests[:2]]
    more = f" and {len(tests) - 2} more" if len(tests) > 2 else ""
    lines.append(f"in {', '.join(named)}{more}")
    return lines


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def stale_values(terminal: Terminal, totals: Totals) -> None:
    """The functions that keep a stale value: what changed, and in which test."""
    if not totals.stale:
        return
    terminal.write_line(
        f"jitcache: {_many(len(totals.stale), 'function')} "
        f"{'keeps' if len(totals.stale) == 1 else 'keep'} a stale value; --jitcache-strict shows each in full:",
        yellow=True,
    )
    for test, one in totals.stale:
        function = one["function"]
        terminal.write_line(f"  {one['title']}  {show_path(function['file'])}:{function['line']}")
        after = (
            f"between {one['changed_after']} and {test or 'the end'}"
            if one["changed_after"]
            else f"in {test or 'the end'}"
        )
        terminal.write_line(f"    traced in {one['traced_in'] or 'the collection'}, changed {after}")


def notes(
    terminal: Terminal,
    settings: Settings,
    stale: Sequence[str],
    unwritten: Sequence[str],
    totals: Totals,
) -> None:
    """What else the user has to know: stale entries of the baseline, files that were not written, tests not seen whole."""
    for line in unwritten:
        terminal.write_line(f"jitcache: {line}", red=True)
    if stale and settings.baseline is not None:
        entries = f"{len(stale)} stale entr{'y' if len(stale) == 1 else 'ies'}"
        terminal.write_line(
            f"jitcache: {entries} in {settings.baseline.name} (--jitcache-update-baseline drops them):", yellow=True
        )
        for entry in stale:
            terminal.write_line(f"  {entry}")
    if settings.update_baseline and settings.baseline is not None and not unwritten:
        terminal.write_line(f"jitcache: baseline written to {settings.baseline}")
    problems = totals.problems
    if problems:
        test, texts = next(iter(problems.items()))
        terminal.write_line(
            f"jitcache: {_many(len(problems), 'test')} not seen whole, first {test or 'the collection'}: {texts[0]}",
            yellow=True,
        )
