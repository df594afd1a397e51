"""What a guard has to say of a program, from the executions of its bodies that were counted."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from counting import Event
from programs import Program, Step, Unit, marks_by_name, named

CAUSES = {
    # how a cause begins: what differs then
    "new function object": "instance",
    "made anew and kept": "instance",
    "weak type": "weak",
    "positional or keyword": "keyword",
    "default argument": "default",
    "caches cleared": "epoch",
    "static argument made anew": "static",
    "static argument is NaN": "static",
    "jit options": "option",
    "JAX config": "context",
    "shape": "shape",
    "dtype": "dtype",
    "pytree structure": "tree",
    "static argument changed": "value",
}
ANEW = {"Fresh()", 'float("nan")', '(1, float("nan"))', "fresh_function()", "(1, Fresh())"}


@dataclass(frozen=True)
class Counted:
    """A trace that counts: which function, for which signature, and what else was the case."""

    function: tuple[Any, ...]
    signature: Any
    facts: dict[str, Any]
    line: int
    event: Event


def lines_of(text: str) -> dict[str, int]:
    """The lines that carry a tag."""
    return {m[1]: n for n, line in enumerate(text.splitlines(), 1) for m in re.finditer(r"# ((?:def|call):\S+)", line)}


def _facts(unit: Unit | None, step: Step, event: Event) -> dict[str, Any]:
    facts: dict[str, Any] = {"context": step.context, "epoch": event.epoch}
    if unit is None:
        return facts
    y = step.y
    facts |= {
        "instance": event.turn if unit.anew and not (unit.life == "kept" and unit.target == "method") else 0,
        "weak": (step.x == "w3", y in ("0.5", "0.25", "1") or "1.0," in y),
        "keyword": step.keyword and bool(y),
        "default": unit.second == "default" and not y,
        "option": step.option,
        "shape": "4" in step.x,
        "dtype": (step.x == "i3", y == "1"),
        "tree": y.split("F3")[0] + y[-3:] + str(y.find('"b"') < y.find('"a"') if "Ordered" in y else "")
        if unit.second == "tree"
        else "",
        "static": event.turn if y in ANEW else 0,
        "value": y if unit.second == "static" and y not in ANEW else "",
    }
    if unit.form == "filter_jit" and unit.second == "rate":  # a Python scalar is static there
        facts["value"], facts["weak"] = y, (facts["weak"][0], False)
    return facts


def counted(program: Program, events: list[Event], text: str) -> list[Counted]:
    where = lines_of(text)
    units = {unit.name: unit for unit in program.units}
    out = []
    for event in events:
        step = program.all_steps[event.step]
        if event.body.startswith("o"):  # the outer function of a call in another jit, made anew each time
            facts = {"instance": event.turn, "context": step.context, "epoch": event.epoch}
            out.append(Counted((event.body,), event.signature, facts, where[f"call:{event.step}"], event))
            continue
        inner = event.body not in units
        unit = units[event.body.removeprefix("k_")]
        facts = _facts(None if inner else unit, step, event)
        function: tuple[Any, ...] = (event.body,)
        if (
            not inner
            and unit.life == "kept"
            and facts["instance"]
            and program.guard.per != "definition"
            and unit.form != "map"
        ):
            function += (event.turn,)
        if not inner and unit.anew and step.under == "jit":  # what is made anew in another trace is part of that one
            function += (event.turn,)
        tag = f"call:{event.body}" if inner else f"call:h_{unit.name}" if unit.helper else f"call:{event.step}"
        signature = event.signature
        if not inner and unit.second == "default":
            signature = signature[1][0]  # the default is always spelled out as what it is
        out.append(Counted(function, signature, facts, where[tag], event))
    return out


@dataclass(frozen=True)
class Expected:
    """What may be said: nothing, or that one of these functions was traced so often."""

    failing: dict[str, set[tuple[int, frozenset[str], int]]]  # body: (count, causes, line of the last trace)
    spoiled: bool = False  # jit was disabled for a call

    @property
    def passes(self) -> bool:
        return not self.failing and not self.spoiled


def verdict(traces: list[Counted], max_traces: int, per: str, first_only: bool = False) -> Expected:
    """The functions that were traced too often. first_only: at the trace that was one too many."""
    groups: dict[Any, list[Counted]] = defaultdict(list)
    for trace in traces:
        groups[trace.function if per == "total" else (trace.function, trace.signature)].append(trace)
    failing: dict[str, set[tuple[int, frozenset[str], int]]] = defaultdict(set)
    worst: dict[str, int] = defaultdict(int)
    for group in groups.values():
        worst[group[0].event.body] = max(worst[group[0].event.body], len(group))
    for group in groups.values():
        body = group[0].event.body
        if len(group) > max_traces and len(group) == worst[body]:
            for i in range(max(1, max_traces), len(group)):
                failing[body].add((len(group), causes(group[:i], group[i]), group[i].line))
            if max_traces == 0:
                failing[body].add((len(group), frozenset(["any"]), group[-1].line))
    return Expected(dict(failing))


def causes(before: list[Counted], now: Counted) -> frozenset[str]:
    """What differs from the most similar of the earlier traces."""
    differences = [frozenset(k for k in now.facts if now.facts[k] != other.facts.get(k)) for other in before]
    fewest = min(map(len, differences))
    return frozenset().union(*(d for d in differences if len(d) == fewest)) or frozenset(
        ["nothing", "epoch"]
    )  # JAX does not tell why it dropped it


def _names(body: str, said: str, program: Program) -> bool:
    units = {unit.name: unit for unit in program.units}
    if body in units and units[body].target == "lambda":
        return said == "<lambda>"
    if body.startswith("o"):
        return said == "<lambda>"
    return said in (body, f"C_{body}") or said.endswith(f".{body}")


def disagreements(program: Program, text: str, record: Any, outcome: Any) -> list[str]:
    """What the guard said that is not so; empty where all is right."""
    guard, error = program.guard, outcome.error
    warm = {*range(len(program.warm))}
    traces = [t for t in counted(program, record.events, text) if t.event.step not in warm]
    first_word = str(error).splitlines()[0] if error is not None else ""
    inner_range = None
    if guard.inner:
        inner_range = {n + len(program.warm) for n in range(guard.inner[0], guard.inner[1] + 1)}
    if guard.form in ("named", "wrap") or (guard.form == "mark" and marks_by_name(program)):
        judged = [t for t in traces if t.event.body[0] == "u" or (t.event.body[0] == "k" and _under_plain(program, t))]
    else:
        judged = traces
    spoiled = any(program.all_steps[n].context == "disable_jit" for n in record.steps - warm)
    expected = [verdict(judged, guard.max_traces, guard.per)]
    if inner_range is not None:
        inside = verdict([t for t in traces if t.event.step in inner_range], 1, "signature")
        if not inside.passes:
            expected = [inside]  # it raises at the end of its block
    if outcome.escaped:
        return [] if guard.escape else ["an error of the user's that was not asked for"]
    if guard.escape and (inner_range is None or expected[0].passes) and not (spoiled and inner_range):
        return ["an error of the user's was lost: " + first_word]
    if spoiled:
        if guard.form == "wrap" and not outcome.ended:
            return []  # outside pytest a wrap has no end at which it could say so
        return [] if error is not None else ["a call under disable_jit passes"]
    [want] = expected
    nothing = not judged or (inner_range is not None and not any(t.event.step in inner_range for t in traces))
    idle = _idle(program, judged)
    problems = [n for n in outcome.noise if not (nothing and n.startswith("warned: nothing was traced in the block"))]
    problems = [n for n in problems if not any(n.startswith(f"warned: {name} was ") for name in idle)]
    if want.passes:
        if error is not None:
            problems.append(f"false alarm: {first_word}")
        return problems
    if error is None:
        return [*problems, f"miss: {want.failing}"]
    match = re.match(r"(\S+) traced (\d+)x, allowed (\d+): (.*)$", first_word)
    if not match:
        return [*problems, f"strange: {first_word}"]
    name, count, _, cause = match[1], int(match[2]), match[3], match[4]
    bodies = [body for body in want.failing if _names(body, name, program)]
    if not bodies:
        return [*problems, f"another function: {first_word}; expected {want.failing}"]
    options = set().union(*(want.failing[body] for body in bodies))
    if count not in {n for n, _, _ in options}:
        problems.append(f"wrong count: {first_word}; expected {options}")
    attributes = {attribute for word, attribute in CAUSES.items() if cause.startswith(word)} or {f"?{cause}"}
    if not any("any" in c or attributes & c for _, c, _ in options):
        problems.append(f"wrong cause: {first_word}; expected {options}")
    places = [int(m[1]) for m in re.finditer(r"trace \d+ at \S*program\S*?:(\d+)", str(error))]
    last = [line for _, _, line in options]
    if not places or places[-1] not in last:
        problems.append(f"wrong line: {first_word} at {places}; expected {options}")
    if guard.form == "wrap":
        if outcome.line not in {lines_of(text).get(f"call:{max(record.steps)}")}:
            problems.append(f"raised at line {outcome.line}, not at the call")
        early = verdict([t for t in judged if t.event.step != max(record.steps)], guard.max_traces, guard.per)
        if not early.passes and guard.max_traces > 0:
            problems.append(f"raised late: {first_word}; expected {early.failing}")
    return problems


def _idle(program: Program, judged: list[Counted]) -> set[str]:
    """What the guard names and of which no trace ended: it may warn that it says nothing."""
    traced = {t.event.body for t in judged}
    if program.guard.form == "plain":
        return set() if judged else {"work"}
    idle = [unit for unit in program.units if unit.name not in traced]
    return {name for unit in idle for name in (unit.name, f"h_{unit.name}", "<lambda>", f"C_{unit.name}")}


def _under_plain(program: Program, trace: Counted) -> bool:
    """Whether the unit of this inner function is guarded through a plain function, so that all in it counts."""
    [unit] = [u for u in program.units if u.name == trace.event.body.removeprefix("k_")]
    return named(unit).startswith("h_")
