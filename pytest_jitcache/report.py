"""All the texts of a verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

from pytest_jitcache.causes import CAUSES, Difference, compare, explain
from pytest_jitcache.errors import GuardError
from pytest_jitcache.jax import names
from pytest_jitcache.jax.explanations import explains_misses
from pytest_jitcache.recorder import Trace
from pytest_jitcache.varying import of_traces

_Error = TypeVar("_Error", bound=GuardError)

NOTHING_IN_BLOCK = (
    "nothing was traced in the block of assert_traced_once(): either no jitted function was called, or all of them were "
    "warm from before. Name the function, so that it starts cold."
)


def retraced(verb: str, group: Sequence[Trace], allowed: int, per: str, info: str | None) -> str:
    """The whole text of a failure."""
    last = group[-1]
    earlier, differences = nearest(group, verb)
    first = f"{last.name} {verb} {len(group)}x, allowed {allowed}: {differences[0].title}"
    noun = "trace" if verb == "traced" else "compile"
    why, fix = explain(differences[0], earlier, last)
    lines = [first, ""]
    if info:
        lines += [info, ""]
    lines.append(f"{described(last)} " + (f"is defined at {last.place}." if last.line else "has no source in Python."))
    shown, left = _selection(group, earlier)
    keep = [d.what for d in differences]
    for trace in shown:
        number = group.index(trace) + 1
        if left and trace is shown[-2 if len(shown) > 1 else -1] and number > 2:
            lines.append(f"  … {left} more …")
        lines += _entry(noun, number, trace, keep)
    lines += _differences(differences)
    varies = of_traces(trace.signature for trace in group)
    if per == "total" and len(group) > 2 and varies:
        lines.append(f"  {varies}")
    lines += ["", *wrapped("why: ", why), *wrapped("fix: ", fix)]
    for also in differences[1:3]:
        another = explain(also, earlier, last)[1]
        if another != fix:
            lines += wrapped("     And then: ", another)
    if per == "total" and CAUSES[differences[0].cause].new_signature:
        lines.append('     If each signature may be traced once, use per="signature", the default.')
    return "\n".join(lines)


def blame(error: _Error, last: Trace) -> _Error:
    """Let a failure point at the call that made the last trace, and at the test's own line that led there."""
    if last.test_site is not None:
        error.line = last.test_site.line
    site = last.call_site or last.test_site
    if site is not None:
        error.place = str(site)
    return error


def wrapped(label: str, text: str) -> list[str]:
    indent = " " * len(label)
    return textwrap.wrap(label + text, 110, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def nearest(group: Sequence[Trace], verb: str) -> tuple[Trace, list[Difference]]:
    """The earlier trace that differs least from the last one, and the differences. One alone is not warm."""
    *earlier, last = group
    best: tuple[Trace, list[Difference]] | None = None
    for candidate in reversed(earlier[-8:]):
        found = compare(candidate, last, verb == "compiled")
        if best is None or _distance(candidate, last, found) < _distance(best[0], last, best[1]):
            best = candidate, found
    return best if best is not None else (last, [Difference("not warm")])


def _distance(earlier: Trace, last: Trace, differences: Sequence[Difference]) -> int:
    """How much is to be the same for the last trace to find the earlier one in JAX's cache, besides the function object."""
    apart = sum(difference.cause not in ("rewrapped", "caches cleared") for difference in differences)
    return apart + (earlier.epoch is not last.epoch)


def described(trace: Trace) -> str:
    if "partial" in trace.kinds[:1]:
        kind = f"`{trace.name}`, bound by functools.partial,"
    elif trace.name == "<lambda>":
        owner = trace.qualname.replace(".<locals>", "").rpartition(".")[0]
        kind = f"The lambda in `{owner}`" if owner else "The lambda"
    else:
        kind = f"`{trace.qualname.replace('.<locals>', '')}`"
    return kind


def _selection(group: Sequence[Trace], earlier: Trace) -> tuple[list[Trace], int]:
    if len(group) <= 4:
        return list(group), 0
    shown = [group[0], group[1], *([earlier] if earlier not in group[:2] else []), group[-1]]
    return shown, len(group) - len(shown)


def _entry(noun: str, number: int, trace: Trace, keep: Sequence[str], limit: int = 100) -> list[str]:
    site = trace.call_site or trace.test_site
    where = f"{site} in {_bare(site.function)}" if site is not None else "an unknown place"
    if trace.test_site is not None and trace.call_site is not None and _differs(trace):
        where += f", called from {trace.test_site} in {_bare(trace.test_site.function)}"
    if trace.inside is not None:
        where += f", inlined in the trace of {trace.inside.name}"
    if trace.thread != "MainThread":
        where += f", thread {trace.thread}"
    lines = [f"  {noun} {number} at {where}"]
    if trace.signature.arguments or trace.signature.known:
        lines.append(f"      {trace.signature.render(limit, keep)}")
    return lines


def _differs(trace: Trace) -> bool:
    a, b = trace.call_site, trace.test_site
    return a is not None and b is not None and (a.filename, a.line) != (b.filename, b.line)


def _bare(function: str) -> str:
    return function.replace(".<locals>", "")


def _differences(differences: Sequence[Difference]) -> list[str]:
    lines = []
    for difference in differences[:4]:
        if difference.what:
            lines.append(f"  differs: {difference.what}: {difference.before} before, {difference.after} now")
    more = len(differences) - 4
    return [*lines, f"  … {more} more differences"] if more > 0 else lines


def everything(group: Sequence[Trace], asked: bool = False) -> str:
    """All that is known of the traces, for -vv.

    Args:
        asked: whether JAX was asked for its own explanation of each trace.
    """
    noun = "trace" if group[0].stage == "trace" else "compile"
    lines = ["all that is known:"]
    for number, trace in enumerate(group, 1):
        spent = ", ".join(f"{stage} {seconds * 1e3:.1f} ms" for stage, seconds in trace.seconds.items())
        compiles = f"{trace.compiles} compile{'' if trace.compiles == 1 else 's'}"
        lines += _entry(noun, number, trace, (), limit=2000)
        lines.append(
            f"      traced for {trace.traced_for}; {' of '.join(trace.kinds)}; {spent or 'no times'}; {compiles}"
        )
        if trace.options:
            lines.append("      options: " + ", ".join(f"{k}={v}" for k, v in trace.options))
        if trace.words:
            lines += ["      JAX says:", *(f"        {line}" for line in trace.words.splitlines())]
        elif asked and trace.stage == "trace":
            lines.append("      JAX says nothing about it.")
    lost = names.lost()
    if asked and not explains_misses():
        lost.append("this JAX does not explain cache misses (it has no jax_explain_cache_misses)")
    return "\n".join([*lines, *(f"  not known: {line}" for line in lost)])


def many_signatures(traces: Sequence[Trace], allowed: int) -> str:
    """The whole text of a failure under `--jitcache-strict-signatures`."""
    last = traces[-1]
    first = f"{last.name} has {len(traces)} signatures in this test, allowed {allowed}"
    why = "JAX traces and compiles a function once for each signature: each shape, dtype, structure and static value."
    fix = (
        "Where a size differs, pad to one (or a few); where a static value does, pass it as a traced argument if only its "
        "value matters to the arithmetic. If all are meant, allow more."
    )
    lines = [first, "", f"{described(last)} is defined at {last.place}."]
    for number, trace in enumerate(traces[:3], 1):
        lines += _entry("signature", number, trace, ())
    if len(traces) > 3:
        lines.append(f"  … {len(traces) - 3} more …")
    varies = of_traces(trace.signature for trace in traces)
    return "\n".join([*lines, f"  {varies}", "", *wrapped("why: ", why), *wrapped("fix: ", fix)])


def disabled(name: str, info: str | None) -> str:
    return _join(
        f"{name} was not judged: jit disabled",
        "`jax.disable_jit()` or the setting jax_disable_jit was in force during a call, so nothing was traced and nothing "
        "could be counted.",
        "Call it with jit enabled, or leave this guard out of the runs without jit.",
        info,
    )


def unjudged(name: str, problems: Sequence[str], info: str | None) -> str:
    first = problems[0]
    return _join(
        f"{name} was not judged: {first}",
        " ".join(problems),
        "Keep the listeners in place while a guard is watching.",
        info,
    )


def cannot_judge(name: str, missing: Sequence[str], info: str | None) -> str:
    return _join(
        f"cannot judge {name}: {missing[0]}",
        "; ".join(missing) + ". A guard that does not see each trace could only pass for want of evidence.",
        "Use a version of JAX that jax-jitcache was tested with (see README), or a later jax-jitcache.",
        info,
    )


def captures_not_checked(name: str, reason: str) -> str:
    return f"what {name} captures was not checked: {reason}."


def never_traced(name: str, info: str | None) -> str:
    return _join(
        f"{name} was never traced: it was called, and there is no jit in it",
        "The guard counts traces, and neither the function nor anything it calls is jitted, so the check could not fail.",
        f"Jit `{name}`, or guard the function that is jitted.",
        info,
    )


def never_called(name: str, jitted: bool) -> str:
    inside = " (or only inside other jitted functions that were traced before)" if jitted else ""
    return f"{name} was never called while assert_traced_once was watching{inside}, so the check says nothing."


def maybe_warm(name: str) -> str:
    return (
        f"{name} was called and nothing was traced: either what it calls was never jitted, or it was warm from before. "
        "Guard the jitted function itself, so that it starts cold."
    )


def _join(first: str, why: str, fix: str, info: str | None) -> str:
    return "\n".join([first, "", *([info, ""] if info else []), *wrapped("why: ", why), *wrapped("fix: ", fix)])
