"""From the document of a run (`suite.output_json`) to its page. All that comes from the program is escaped."""

from __future__ import annotations

import html
import json
import linecache
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from pytest_jitcache.places import show

Document = dict[str, Any]

_STAGES = (("trace", "tracing"), ("lower", "lowering"), ("compile", "compiling"))
_FIRST = 3  # things to do first
_RECORDS = 60  # of one function that are shown
_STATIC = 1500  # spans of the picture that needs no JavaScript
_WIDTH, _LANE, _MARGIN = 1000, 44, 150


class Span(NamedTuple):
    """A span of the timeline: its stage, its lane, its start and length in seconds, and the function, if it is known."""

    stage: str
    lane: int
    start: float
    seconds: float
    function: int | None
    name: str
    wasted: bool
    signature: str


def render(document: Document) -> str:
    """The text of the file."""
    functions = document["functions"]
    lanes, spans = _spans(document)
    length = max((span.start + span.seconds for span in spans), default=0.0)
    parts = [
        _head(document),
        _cost(document),
        _do_first(functions),
        _stale(document.get("stale_values", ())),
        _timeline(lanes, spans, length),
        _table(document),
        _operations(document["jax_operations"]),
    ]
    data = {
        "functions": [
            {"name": _name(f), "place": _place(f), "cause": f["causes"][0]["cause"] if f["causes"] else ""}
            for f in functions
        ],
        "lanes": lanes,
        "spans": [list(span) for span in sorted(spans, key=lambda span: span.start)],
        "length": length,
    }
    return _PAGE.format(
        title=_text(document.get("program") or "a run"),
        style=_file("style.css"),
        script=_file("script.js"),
        body="\n".join(parts),
        # no end of the script, and no start of a comment, whatever the program is named
        data=json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    )


_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>jitcache: {title}</title>
<style>
{style}</style>
</head>
<body>
{body}
<footer>Written by jax-jitcache. Times are a function's own: without those of the traces inside its traces.</footer>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _text(value: object) -> str:
    """Text of the program, for a place between tags or in an attribute."""
    return html.escape(str(value), quote=True)


def _prose(value: object) -> str:
    """A sentence of ours, in which code stands between backticks."""
    parts = str(value).split("`")
    return "".join(f"<code>{_text(part)}</code>" if number % 2 else _text(part) for number, part in enumerate(parts))


def _name(function: Document) -> str:
    return str(function["qualname"]).replace(".<locals>", "") or str(function["name"])


def _place(function: Document) -> str:
    return f"{show(function['file'])}:{function['line']}" if function["line"] else "no source in Python"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- the top


def _head(document: Document) -> str:
    name = document.get("program")
    what = f"jitcache: <code>{_text(name)}</code>" if name else "jitcache: tracing and compiling"
    theme = '<button id="theme" type="button" hidden>dark or light</button>'
    return f'<header class="head"><h1>{what}</h1>{theme}</header>'


def _cost(document: Document) -> str:
    totals = document["totals"]
    wall = totals["wall_seconds"]
    seconds = totals["seconds"]
    spent = sum(seconds.values())
    rest = max(0.0, wall - spent)
    whole = spent + rest or 1.0
    rows = [(stage, word, seconds[stage]) for stage, word in _STAGES] + [("rest", "the rest", rest)]
    bar = "".join(f'<span class="{stage}" style="width:{100 * value / whole:.2f}%"></span>' for stage, _, value in rows)
    label = ", ".join(f"{word} {_seconds(value)}" for _, word, value in rows)
    key = "".join(f'<li><i class="{stage}"></i>{word} {_seconds(value)}</li>' for stage, word, value in rows)
    wasted, traces = totals["wasted_traces"], totals["traces"]
    vain = (
        f'<p class="vain">{_seconds(totals["wasted_seconds"])} in vain: {wasted} of {_many(traces, "trace")} had been made before.</p>'
        if wasted
        else f"<p>{_many(traces, 'trace')}, none of them in vain.</p>"
    )
    workers = f" in {_many(totals['workers'], 'process').replace('processs', 'processes')}" if totals["workers"] else ""
    return (
        f'<p class="soft">{_seconds(wall)}{workers}, of which {_seconds(spent)} for JAX to trace, lower and compile '
        f"({_many(totals['compiles'], 'compile')}).{_cache(document)}</p>"
        f'<div class="bar" role="img" aria-label="{_text(label)}">{bar}</div><ul class="key">{key}</ul>{vain}'
    )


def _cache(document: Document) -> str:
    cache = document.get("persistent_cache") or {}
    if not cache.get("misses") and not cache.get("hits"):
        return ""
    return (
        f" JAX's persistent cache served {cache['hits']:.0f} compiles, which saved {_seconds(cache['saved_seconds'])}, and "
        f"missed {cache['misses']:.0f}."
    )


def _do_first(functions: Sequence[Document]) -> str:
    numbered = sorted(enumerate(functions), key=lambda one: -one[1]["wasted_seconds"])
    items = []
    for number, one in [(n, f) for n, f in numbered if f["wasted_traces"]][:_FIRST]:
        cause = max(one["causes"], key=lambda cause: cause["traces"], default={"cause": "cause unknown", "rule": None})
        found = f" flake8 finds it as {_text(cause['rule'])}." if cause["rule"] else ""
        fix = f" {_prose(cause['fix'])}" if cause.get("fix") else ""
        items.append(
            f'<li><a href="#function-{number}" data-function="{number}"><code>{_text(_name(one))}</code></a> at '
            f"<code>{_text(_place(one))}</code> was traced {_many(one['wasted_traces'], 'time')} in vain, "
            f"{_seconds(one['wasted_seconds'])}: {_text(cause['cause'])}.{fix}{found}</li>"
        )
    if not items:
        return ""
    return f'<section><h2>What to do first</h2><ol class="first">{"".join(items)}</ol></section>'


def _stale(values: Iterable[Document]) -> str:
    items = "".join(f"<li>{_text(one['title'])}</li>" for one in values)
    return f"<section><h2>Stale values</h2><ul>{items}</ul></section>" if items else ""


# -- the timeline


def _spans(document: Document) -> tuple[list[str], list[Span]]:
    """The lanes, one for each thread of each process, and the spans in them, from the first one on."""
    lanes: dict[tuple[str, int, str], int] = {}
    found = []
    names: dict[str, int] = {}
    for number, one in enumerate(document["functions"]):
        names.setdefault(one["name"], number)
    zero = min((row[2] for test in document["tests"] for row in test.get("spans", ())), default=0.0)
    for test in document["tests"]:
        for stage, name, start, seconds, ident, thread, signature, _, *more in test.get("spans", ()):
            lane = lanes.setdefault((test["worker"] or "", ident, thread), len(lanes))
            wasted = bool(more and more[0])
            found.append(Span(stage, lane, start - zero, seconds, names.get(name), name, wasted, signature[:200]))
    return [f"{worker} {thread}".strip() for worker, _, thread in lanes], found


def _timeline(lanes: Sequence[str], spans: Sequence[Span], length: float) -> str:
    if not spans:
        return ""
    label = f"{_many(len(spans), 'span')} on {_many(len(lanes), 'lane')} in {_seconds(length)}; the table below has all functions"
    key = "".join(f'<li><i class="{stage}"></i>{word}</li>' for stage, word in _STAGES)
    return (
        '<section><h2>Timeline</h2><div class="tools"><ul class="key">'
        f'{key}<li><i class="hatched"></i>in vain</li></ul>'
        '<button id="whole" type="button" hidden>the whole</button></div>'
        f'<div class="timeline" id="timeline" data-label="{_text(label)}">{_picture(lanes, spans, length, label)}</div>'
        '<p class="soft">Drag to zoom, click a span to open its function; with the keyboard: + and -, arrows, Escape.</p></section>'
    )


def _picture(lanes: Sequence[str], spans: Sequence[Span], length: float, label: str) -> str:
    """The picture for browsers without JavaScript: the longest spans."""
    rows = {stage: number for number, (stage, _) in enumerate(_STAGES)}
    scale = (_WIDTH - _MARGIN) / (length or 1.0)
    shapes = []
    for span in sorted(spans, key=lambda span: -span.seconds)[:_STATIC]:
        fill = "url(#vain)" if span.wasted else f"var(--{span.stage})"
        shapes.append(
            f'<rect x="{_MARGIN + span.start * scale:.1f}" y="{span.lane * _LANE + 4 + rows[span.stage] * 12}" '
            f'width="{max(1.0, span.seconds * scale):.1f}" height="11" fill="{fill}">'
            f"<title>{_text(span.stage)} {_text(span.name)} {_seconds(span.seconds)}</title></rect>"
        )
    names = "".join(
        f'<text x="2" y="{number * _LANE + 20}" font-size="12" fill="var(--soft)">{_text(lane[:22])}</text>'
        for number, lane in enumerate(lanes)
    )
    pattern = (
        '<defs><pattern id="vain" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="4" height="8" fill="var(--vain)"/></pattern></defs>'
    )
    height = len(lanes) * _LANE
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{_text(label)}">{pattern}{names}{"".join(shapes)}</svg>'


# -- the table

_COLUMNS = (
    ("name", "function", ""), ("seconds", "seconds", ""), ("traces", "traces", ""), ("wasted", "in vain", ""),
    ("signatures", "signatures", "wide"), ("compiles", "compiles", "wide"), ("calls", "tests", "wide"),
)  # fmt: skip


def _table(document: Document) -> str:
    functions = document["functions"]
    if not functions:
        return "<section><h2>Functions</h2><p>Nothing of your own was traced or compiled.</p></section>"
    records: dict[int, list[tuple[str, Document]]] = {}
    for test in document["tests"]:
        for record in test["records"]:
            records.setdefault(record["function"], []).append((test["test"] or "", record))
    head = "".join(
        f'<span class="{wide}"><button type="button" disabled data-key="{key}" aria-pressed="{str(key == "seconds").lower()}">'
        f"{word}</button></span>"
        for key, word, wide in _COLUMNS
    )
    rows = "".join(_function(number, one, records.get(number, [])) for number, one in enumerate(functions))
    return (
        '<section><h2>Functions</h2><div class="tools" id="tools" hidden>'
        '<label>filter <input id="filter" type="search" autocomplete="off"></label>'
        '<label><input id="wasted" type="checkbox"> in vain only</label><span class="soft" id="count" role="status"></span></div>'
        f'<div class="row columns">{head}</div><div id="functions">{rows}</div></section>'
    )


def functions_table(document: Document) -> str:
    """The functions of a run as a plain table, for a notebook."""
    if not document["functions"]:
        return "<p>Nothing of your own was traced or compiled in this cell.</p>"
    rows = "".join(
        f"<tr><td><code>{_text(_name(one))}</code><br>{_text(_place(one))}</td>"
        f"<td>{_seconds(sum(one['seconds'].values()))}</td><td>{one['traces']}</td><td>{one['wasted_traces']}</td>"
        f"<td>{one['signatures']}</td><td>{one['compiles']}</td>"
        f"<td>{'; '.join(_text(cause['cause']) for cause in one['causes'])}</td></tr>"
        for one in document["functions"]
    )
    head = "".join(
        f"<th>{word}</th>"
        for word in ("function", "seconds", "traces", "in vain", "signatures", "compiles", "why again")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _function(number: int, one: Document, records: Sequence[tuple[str, Document]]) -> str:
    spent = sum(one["seconds"].values())
    words = f"{_name(one)} {one['file']} {' '.join(cause['cause'] or '' for cause in one['causes'])} {' '.join(one['tests'])}"
    values = (
        (_seconds(spent), ""), (one["traces"], ""), (one["wasted_traces"], "vain" if one["wasted_traces"] else ""),
        (one["signatures"], "wide"), (one["compiles"], "wide"), (len(one["tests"]), "wide"),
    )  # fmt: skip
    cells = "".join(f'<span class="{css}">{value}</span>' for value, css in values)
    return (
        f'<details class="function" id="function-{number}" data-name="{_text(_name(one))}" data-seconds="{spent}" '
        f'data-traces="{one["traces"]}" data-wasted="{one["wasted_traces"]}" data-signatures="{one["signatures"]}" '
        f'data-compiles="{one["compiles"]}" data-calls="{len(one["tests"])}" data-text="{_text(words.lower())}">'
        f'<summary><span class="row"><span><code>{_text(_name(one))}</code>'
        f'<span class="place">{_text(_place(one))}</span></span>{cells}</span></summary>'
        f"<div>{_source(one)}{_causes(one)}{_records(records)}</div></details>"
    )


def _source(one: Document) -> str:
    """A few lines of source, where the file is there."""
    line = one["line"]
    lines = [(n, linecache.getline(one["file"], n)) for n in range(max(1, line - 1), line + 5)] if line else []
    if not any(text for _, text in lines):
        return ""
    shown = "".join(
        f'<span class="{"here" if n == line else ""}">{n:5}  {_text(text.rstrip())}</span>\n'
        for n, text in lines
        if text
    )
    return f"<pre>{shown}</pre>"


def _causes(one: Document) -> str:
    items = []
    for cause in one["causes"]:
        found = f"; flake8 finds it as {_text(cause['rule'])}" if cause["rule"] else ""
        fix = f"<br>{_prose(cause['fix'])}" if cause.get("fix") else ""
        items.append(
            f"<li><strong>{_text(cause['cause'])}</strong>, {_many(cause['traces'], 'trace')}{found}{fix}</li>"
        )
    varies = f"<p>{_text(one['varies'])}</p>" if one.get("varies") else ""
    return (f"<p>Traced again because of</p><ul>{''.join(items)}</ul>" if items else "") + varies


def _records(records: Sequence[tuple[str, Document]]) -> str:
    rows = []
    before = ""
    for test, record in records[:_RECORDS]:
        if not record["traced"]:
            continue
        site = record.get("call_site") or record.get("test_site")
        where = f"{show(site['file'])}:{site['line']} in {site['function']}" if site else ""
        vain = f'<span class="vain">{_text(record["cause"])}</span>' if record.get("wasted") else ""
        signature = str(record.get("signature", ""))
        rows.append(
            f"<tr><td class='mono'>{_marked(signature, before)}</td><td class='mono'>{_text(where)}</td><td>{_text(test)}</td>"
            f"<td>{_seconds(sum(record['seconds'].values()))}</td><td>{vain}</td></tr>"
        )
        before = signature
    if not rows:
        return ""
    more = len(records) - _RECORDS
    left = f'<p class="soft">{more} more</p>' if more > 0 else ""
    head = "<tr><th>signature</th><th>called at</th><th>in</th><th>seconds</th><th>in vain</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{left}"


def _marked(signature: str, before: str) -> str:
    """A signature with the arguments marked that are not as in the one before."""
    if not before or signature == before:
        return _text(signature)
    known = set(before.split(", "))
    return ", ".join(_text(part) if part in known else f"<mark>{_text(part)}</mark>" for part in signature.split(", "))


def _operations(operations: Sequence[Document]) -> str:
    if not operations:
        return ""
    rows = "".join(
        f"<tr><td><code>{_text(one['name'])}</code></td><td>{one['compiles']}</td>"
        f"<td>{_seconds(sum(one['seconds'].values()))}</td></tr>"
        for one in operations[:20]
    )
    return (
        "<section><h2>JAX's own operations, outside of your jitted functions</h2><table><thead><tr><th>operation</th>"
        f"<th>compiles</th><th>seconds</th></tr></thead><tbody>{rows}</tbody></table></section>"
    )
