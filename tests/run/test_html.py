"""The page: self-contained, escaped, readable without JavaScript, and alive in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pytest_jitcache import html

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"


def document(functions: int = 3, spans: int = 30, name: str = "step") -> dict[str, Any]:
    """A run with some functions, the first of which was traced in vain."""
    rows = [
        {
            "name": f"{name}{n}", "qualname": f"{name}{n}", "module": "m", "file": f"/src/{name}.py", "line": n + 1, "column": 0,
            "kinds": ["function"], "traces": 3, "inlined": 0, "signatures": n + 1, "compiles": 3,
            "seconds": {"trace": 0.1 * (n + 1), "lower": 0.1, "compile": 0.2}, "wasted_traces": 0 if n else 2,
            "wasted_seconds": 0.0 if n else 0.3,
            "causes": [] if n else [{"cause": f"new function object {name}", "rule": "JIT101", "traces": 2, "fix": f"Keep `{name}`."}],
            "tests": {f"test_{name}": 3},
        }
        for n in range(functions)
    ]  # fmt: skip
    record = {
        "function": 0, "phase": "call", "thread": "MainThread", "start": 1.0, "compiles": 1, "traced": True, "key": "k",
        "seconds": {"trace": 0.1, "lower": 0.1, "compile": 0.2}, "traced_for": "jit", "inside": None, "test_site": None,
        "call_site": {"file": f"/src/{name}.py", "line": 3, "function": name}, "wasted": "test", "cause": f"shape {name}",
        "rule": None, "allowed": False, "fix": "",
    }  # fmt: skip
    records = [{**record, "signature": f"x: f32[3], {name}: f32[{n}]"} for n in (8, 9)]
    stages = ("trace", "lower", "compile")
    drawn = [
        [
            stages[n % 3],
            f"{name}{n // 3 % functions}",
            1.0 + 0.01 * n,
            0.009,
            n % 2,
            f"thread {name} {n % 2}",
            "x: f32[3]",
            "call",
            n % 9 == 2,
        ]
        for n in range(spans)
    ]
    return {
        "schema": "jitcache-run", "version": 1, "program": f"{name}.py",
        "totals": {
            "wall_seconds": 10.0, "busy_seconds": 1.0, "seconds": {"trace": 0.6, "lower": 0.3, "compile": 0.6}, "traces": 9,
            "compiles": 9, "wasted_traces": 2, "wasted_seconds": 0.3, "workers": 0,
        },
        "functions": rows, "stale_values": [{"test": None, "title": f"{name} keeps a stale value"}],
        "jax_operations": [{"name": f"add {name}", "seconds": {"trace": 0.1}, "compiles": 2}],
        "tests": [{"test": f"{name}.py", "worker": None, "records": records, "spans": drawn}],
    }  # fmt: skip


class Reader(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_page_needs_nothing_from_elsewhere():
    page = html.render(document())
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    assert not [a for tag, a in read(page).tags if tag in ("script", "img", "iframe", "object") and a.get("src")]
    assert not [tag for tag, _ in read(page).tags if tag == "link"]


def test_page_says_without_javascript_what_it_cost_and_what_to_do():
    page = read(html.render(document()))
    for words in (
        "10.0 s, of which 1.50 s for JAX to trace, lower and compile (9 compiles).", "0.30 s in vain: 2 of 9 traces had been made",
        "was traced 2 times in vain, 0.30 s: new function object step. Keep step. flake8 finds it as JIT101.",
        "step keeps a stale value", "x: f32[3], step: f32[9]",
    ):  # fmt: skip
        assert words in page.text
    assert sum(tag == "rect" for tag, _ in page.tags) >= 30
    assert sum(tag == "details" for tag, _ in page.tags) == 3
    assert ("mark", {}) in page.tags  # what differs in a signature


def test_names_of_the_program_are_text_and_nothing_else():
    plain, hostile = (read(html.render(document(name=name))) for name in ("step", HOSTILE))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert not [a for _, attributes in hostile.tags for a in attributes if a.startswith("on")]
    data = re.search(r'id="data">(.*?)</script>', html.render(document(name=HOSTILE)), re.DOTALL)
    assert data is not None
    assert json.loads(data.group(1))["functions"][0]["name"] == f"{HOSTILE}0"


def test_run_in_which_nothing_was_seen():
    nothing = {**document(), "functions": [], "jax_operations": [], "tests": [], "stale_values": []}
    assert "Nothing of your own was traced or compiled." in html.render(nothing)


# -- in a browser

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1200,900"
).split()


class Browser:
    """Chromium, driven through the WebDriver protocol."""

    def __init__(self, port: int, profile: Path) -> None:
        self._base = f"http://127.0.0.1:{port}"
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": [*FLAGS, f"--user-data-dir={profile}"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        value = self._ask("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._base += f"/session/{value['sessionId']}"

    def _ask(self, path: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def open(self, path: Path) -> None:
        self._ask("/url", {"url": path.as_uri()})

    def run(self, script: str) -> Any:
        return self._ask("/execute/sync", {"script": script, "args": []})

    def mouse(self, *steps: tuple[str, int, int]) -> None:
        """Moves, presses and releases, at places of the window."""
        kinds = {"move": "pointerMove", "down": "pointerDown", "up": "pointerUp"}
        actions = []
        for step, x, y in steps:
            actions.append({"type": "pointerMove", "x": x, "y": y, "duration": 20})
            if step != "move":
                actions.append({"type": kinds[step], "button": 0})
        self._ask("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def errors(self) -> list[str]:
        return [row["message"] for row in self._ask("/se/log", {"type": "browser"}) if row["level"] == "SEVERE"]

    def quit(self) -> None:
        self._ask("", None, "DELETE")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driver = shutil.which("chromedriver")
    if driver is None or not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("needs Chromium and its driver")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                made = Browser(port, tmp_path_factory.mktemp("profile"))
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise AssertionError("chromedriver does not answer")
        yield made
        made.quit()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Callable[[dict[str, Any]], Browser]:
    def page(of: dict[str, Any]) -> Browser:
        (tmp_path / "out.html").write_text(html.render(of))
        browser.open(tmp_path / "out.html")
        return browser

    return page


NAMES = "return [...document.querySelectorAll('#functions > details')].filter(d => !d.hidden).map(d => d.dataset.name)"


def test_page_loads_without_an_error_and_shows_a_canvas(page):
    shown = page(document())
    assert shown.errors() == []
    assert shown.run("return document.querySelectorAll('#timeline canvas').length") == 1
    assert shown.run("return document.querySelectorAll('#timeline svg').length") == 0
    assert "30 spans on 2 lanes" in shown.run("return document.querySelector('canvas').getAttribute('aria-label')")


def test_hostile_names_do_nothing(page):
    shown = page(document(name=HOSTILE))
    assert shown.run("return window.hit === undefined") is True
    assert shown.errors() == []


def test_table_sorts_and_filters(page):
    shown = page(document())
    click = "document.querySelector('[data-key=%s]').click();"
    assert shown.run(click % "seconds" + NAMES) == ["step0", "step1", "step2"]
    assert shown.run(click % "seconds" + NAMES) == ["step2", "step1", "step0"]
    assert shown.run("return document.querySelector('[data-key=seconds]').getAttribute('aria-pressed')") == "true"
    write = "const f = document.getElementById('filter'); f.value = 'STEP1'; f.dispatchEvent(new Event('input'));"
    assert shown.run(write + NAMES) == ["step1"]
    assert shown.run("return document.getElementById('count').textContent") == "1 of 3"
    clear = "const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input'));"
    assert shown.run(clear + "document.getElementById('wasted').click();" + NAMES) == ["step0"]


def test_click_on_a_span_opens_its_function_and_a_drag_zooms(page):
    shown = page(document(spans=3))
    left, top, width = shown.run(
        "const c = document.querySelector('canvas'); c.scrollIntoView({block: 'center'});"
        "const r = c.getBoundingClientRect(); return [r.left, r.top, r.width]"
    )
    at = int(left + 155), int(top + 9)
    shown.mouse(("move", *at))
    assert shown.run("return document.querySelector('.tip').textContent").startswith("trace step0")
    shown.mouse(("down", *at), ("up", *at))
    assert shown.run("return document.getElementById('function-0').open") is True
    top = shown.run(
        "const c = document.querySelector('canvas'); c.scrollIntoView({block: 'center'}); return c.getBoundingClientRect().top"
    )
    half = int(left + 150 + (width - 150) / 2)
    shown.mouse(("down", int(left + 150), int(top + 9)), ("move", half, int(top + 9)), ("up", half, int(top + 9)))
    zoomed = "const t = document.getElementById('timeline').dataset; return Number(t.to) - Number(t.from)"
    whole = 0.029
    assert 0.3 * whole < shown.run(zoomed) < 0.7 * whole
    shown.run("document.getElementById('whole').click()")
    assert abs(shown.run(zoomed) - whole) < 1e-3


def test_keyboard_opens_and_zooms(page):
    shown = page(document())
    key = "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '+'}));"
    zoomed = "const t = document.getElementById('timeline').dataset; return Number(t.to) - Number(t.from)"
    before = shown.run(zoomed)
    assert shown.run(key + zoomed) < before
    assert shown.run("return document.querySelector('summary').tabIndex") == 0


def test_theme_is_switched(page):
    shown = page(document())
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = shown.run(paper)
    assert shown.run("document.getElementById('theme').click();" + paper) != before


def test_hundred_thousand_spans_do_not_stall(page):
    shown = page(document(functions=50, spans=100_000))
    spent = shown.run(
        "const began = performance.now(); for (let n = 0; n < 5; n++) window.dispatchEvent(new Event('resize'));"
        "return (performance.now() - began) / 5"
    )
    assert spent < 500  # milliseconds for one picture
    assert shown.errors() == []
