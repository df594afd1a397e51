#!/usr/bin/env python3
"""Run each case file in a pytest process of its own and compare the outcome with the header of the file.

    python run_trace_cases.py PYTHON FOLDER [--only TEXT ...] [--jobs 2] [--timeout 180] [--first-line]
                        [--pythonpath DIR ...] [--extra "PYTEST ARGS"] [--json FILE] [--show]

PYTHON has the plugin installed (or reachable through --pythonpath, then with --extra "-p module").
Prints a line for each case that does not hold and, at the end, `N of M hold`. Exit status 0 if all hold.

Header keys (comment lines at the top of a case, `# key: value`)
    case      one line of description
    needs     importable names; the case is left out of the count where one is missing
    args      arguments for pytest; {tmp} is an empty folder whose files are read as output afterwards
    expect    pass: exit status 0
              fail: exit status 1, a test fails in any phase, no internal error
              error: the run is refused: not 0, no internal error, and no `traced Nx, allowed M` in the text
    traces    runs of the body under a trace, as measured with jax 0.10.2 and 0.12.0.1 (information)
    compiles  XLA compiles of the body's name, measured likewise (information)
    body      the functions whose body runs were counted (information)
    assumes   what the case takes for granted where the design says nothing (information)
    cause     words, one of which (`a | b`) has to be in the failure text, upper or lower case alike
    mentions  fragments separated by ` ; `, alternatives by ` | `. A plain word matches whole words (with a * before
              or after it also parts of words), `f32[...]` does not match within `~f32[...]`, `LINE(tag)` is FILE:NUMBER of the
              source line that ends with `# tag: tag`
    absent    fragments that may be nowhere in the output for this test
    exc       type name of the exception that has to be reported
    only      names of the tests that fail; no other may
    maxchars  greatest length of the failure text
    frames    `any` to allow frames of jax and of the plugin in the traceback (default: none may be shown,
              unless `exc` is given)

The failure text is the exception's message (in a group: of all its members), its notes and the report sections that
are not captured output. Source lines that a traceback shows are no part of it; for `LINE` the places of the shown
frames count as well. For `expect: pass` the mentions are looked up in everything that was printed or written to {tmp}.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

PLUGIN = r"""
import json, os
import pytest

REPORTS = []


def message_of(exc, seen=()):
    if exc is None or id(exc) in seen:
        return ""
    text = str(exc)
    notes = getattr(exc, "__notes__", None) or []
    parts = [text, *map(str, notes)]
    for member in getattr(exc, "exceptions", ()) or ():
        parts.append(message_of(member, (*seen, id(exc))))
    return "\n".join(p for p in parts if p)


def types_of(exc):
    out = [t.__name__ for t in type(exc).__mro__]
    for member in getattr(exc, "exceptions", ()) or ():
        out += types_of(member)
    return out


def frames_of(longrepr):
    out = []
    chain = getattr(longrepr, "chain", None)
    traces = [c[0] for c in chain] if chain else [getattr(longrepr, "reprtraceback", None)]
    for trace in traces:
        for entry in getattr(trace, "reprentries", ()) or ():
            place = getattr(entry, "reprfileloc", None)
            if place is not None:
                out.append([str(place.path), int(place.lineno)])
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        out.append([str(crash.path), int(crash.lineno)])
    return out


def note(report, exc=None):
    longrepr = getattr(report, "longrepr", None)
    REPORTS.append(
        {
            "test": report.nodeid.split("::", 1)[-1],
            "when": getattr(report, "when", "collect"),
            "outcome": report.outcome,
            "xfail": hasattr(report, "wasxfail"),
            "types": types_of(exc) if exc is not None else [],
            "message": message_of(exc) if exc is not None else "",
            "frames": frames_of(longrepr) if report.failed else [],
            "long": str(longrepr) if report.failed else "",
            "sections": [[str(a), str(b)] for a, b in getattr(report, "sections", ())],
        }
    )


EXC = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        EXC[(item.nodeid, call.when)] = call.excinfo.value
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    try:
        exc = EXC.get((report.nodeid, report.when))
        note(report, exc if report.failed or report.skipped else None)
    finally:
        if type(report).__name__ == "TestReport":
            EXC.pop((report.nodeid, report.when), None)


def pytest_collectreport(report):
    if report.failed or report.skipped:
        note(report)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    with open(os.environ["CASE_REPORT"], "w") as out:
        json.dump(REPORTS, out)
"""

LIST_KEYS = ("mentions", "absent", "only")


def read_header(path):
    head = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        found = re.match(r"#\s*([a-z]+(?:\([^)]*\))?):\s*(.*?)\s*$", line)
        if found:
            key, value = found.groups()
            head[key] = f"{head[key]} ; {value}" if key in LIST_KEYS and key in head else value
    return head


def pieces(value):
    return [p.strip() for p in (value or "").split(" ; ") if p.strip()]


def tag_line(path, tag):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.rstrip().endswith(f"# tag: {tag}"):
            return number
    raise SystemExit(f"{path}: no line with `# tag: {tag}`")


def pattern_of(fragment, path):
    """a compiled pattern for one fragment, and whether the shown frames count for it"""
    place = re.fullmatch(r"LINE\((\w+)\)", fragment)
    if place:
        number = tag_line(path, place.group(1))
        return re.compile(rf"{re.escape(path.name)}(?::|\", line ){number}(?!\d)"), True
    word = re.fullmatch(r"(\*?)(\w+)(\*?)", fragment)
    if word:
        before = "" if word.group(1) else r"(?<![A-Za-z0-9_])"
        after = "" if word.group(3) else r"(?![A-Za-z0-9_])"
        return re.compile(before + word.group(2) + after), False
    if re.match(r"[a-z]+\d*\[", fragment):
        return re.compile(rf"(?<![A-Za-z0-9_~]){re.escape(fragment)}"), False
    return re.compile(re.escape(fragment)), False


def has(fragment, path, text, frames):
    for one in fragment.split(" | "):
        pattern, places = pattern_of(one.strip(), path)
        if pattern.search(text) or (places and pattern.search(frames)):
            return True
    return False


class Run:
    def __init__(self, status, output, reports, files):
        self.status, self.output, self.reports, self.files = status, output, reports, files


def run_case(path, head, options):
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        folder = pathlib.Path(folder)
        (folder / "case_report_plugin.py").write_text(PLUGIN)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "files").mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "XLA_", "JAX_")) and k != "CI"}
        env.update(
            PYTHONPATH=os.pathsep.join([str(folder), *options.pythonpath]),
            CASE_REPORT=str(folder / "report.json"),
            PYTHONDONTWRITEBYTECODE="1",
            JAX_PLATFORMS="cpu",
            COLUMNS="120",
        )
        command = [
            options.python, "-m", "pytest", "-c", str(folder / "pytest.ini"), "--rootdir", str(path.parent),
            "-p", "no:cacheprovider",
            # pytest-asyncio warns while it starts, which `-W error` in a case turns into an internal error
            "-p",
            "no:asyncio", "-p", "case_report_plugin", *shlex.split(options.extra),
            str(path), *shlex.split(head.get("args", "").replace("{tmp}", str(folder / "files"))),
        ]  # fmt: skip
        with open(folder / "output", "wb") as sink:
            process = subprocess.Popen(
                command, stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=env, cwd=folder, start_new_session=True,
            )  # fmt: skip
            try:
                status = process.wait(options.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = None
        output = (folder / "output").read_text(encoding="utf-8", errors="replace")
        try:
            reports = json.loads((folder / "report.json").read_text())
        except (OSError, ValueError):
            reports = []
        files = "\n".join(p.read_text(errors="replace") for p in sorted((folder / "files").rglob("*")) if p.is_file())
        return Run(status, output, reports, files)


def text_of(report):
    sections = [f"{title}\n{body}" for title, body in report["sections"] if not title.startswith("Captured")]
    return "\n".join([report["message"] or report["long"], *sections])


def judge(path, head, run, options):
    """(verdict, reasons): verdict is True, False or None (left out)"""
    if run.status is None:
        return False, [f"no end within {options.timeout} s"]
    bad = [r for r in run.reports if r["outcome"] == "failed"]
    skipped = [r for r in run.reports if r["outcome"] == "skipped" and not r["xfail"]]
    if (
        head.get("needs")
        and not bad
        and skipped
        and not any(r["when"] == "call" and r["outcome"] == "passed" for r in run.reports)
    ):
        return None, [f"needs {head['needs']}"]
    reasons = []
    expect = head.get("expect", "")
    if "INTERNALERROR" in run.output:
        reasons.append("internal error of pytest")
    text = "\n".join(text_of(r) for r in bad)
    frames = "\n".join(f"{os.path.basename(p)}:{n}" for r in bad for p, n in r["frames"])
    if expect == "pass":
        text = run.output + "\n" + run.files
        if run.status != 0:
            first = next((line for r in bad for line in text_of(r).splitlines() if line.strip()), "")
            reasons.append(f"exit status {run.status} instead of 0: {first[:160]}")
    elif expect == "fail":
        if run.status != 1 or not bad:
            reasons.append(f"exit status {run.status} with {len(bad)} failed instead of a failure")
    elif expect == "error":
        if run.status == 0:
            reasons.append("accepted instead of refused")
        text = text + "\n" + ("" if bad else run.output)
        if re.search(r"traced \d+x, allowed", text):
            reasons.append("reported as a retrace")
    else:
        raise SystemExit(f"{path}: expect is {expect!r}")
    if not reasons or expect != "pass":
        failed_as_meant = expect == "pass" or bad or run.status not in (0, 5)
        if failed_as_meant:
            cause = head.get("cause")
            if cause:
                where = text.strip().split("\n", 1)[0] if options.first_line else text
                if not any(c.strip().lower() in where.lower() for c in cause.split(" | ")):
                    first = next((line for line in text.splitlines() if line.strip()), "")
                    reasons.append(f"no cause {cause!r} in: {first[:160]}")
            missing = [m for m in pieces(head.get("mentions")) if not has(m, path, text, frames)]
            if missing:
                reasons.append("not mentioned: " + " ; ".join(missing))
            everything = run.output if expect == "pass" else text + "\n" + "\n".join(r["long"] for r in bad)
            found = [a for a in pieces(head.get("absent")) if a in everything]
            if found:
                reasons.append("should be absent: " + " ; ".join(found))
            if head.get("exc") and not any(head["exc"] in r["types"] for r in bad):
                reasons.append(f"no {head['exc']} reported")
            if head.get("only"):
                names = sorted({r["test"].split("::")[-1] for r in bad})
                if names != sorted(pieces(head["only"])):
                    reasons.append(f"failed: {names}")
            if head.get("maxchars") and len(text) > int(head["maxchars"]):
                reasons.append(f"{len(text)} characters of text")
            if expect == "fail" and not head.get("exc") and head.get("frames") != "any":
                alien = {
                    p
                    for r in bad
                    for p, _ in r["frames"]
                    if re.search(r"pytest_jitcache|/jax/|jaxlib|contextlib\.py", p)
                }
                if alien:
                    reasons.append("frames shown: " + " ".join(sorted(alien)))
    return not reasons, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=180)
    parser.add_argument(
        "--first-line", action="store_true", help="look for the cause in the first line of the text only"
    )
    parser.add_argument("--pythonpath", nargs="*", default=[])
    parser.add_argument("--extra", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--show", action="store_true", help="print the output of each case that does not hold")
    options = parser.parse_args()
    options.pythonpath = [os.path.abspath(p) for p in options.pythonpath]
    paths = sorted(p.resolve() for p in options.folder.glob("test_*.py"))
    paths = [p for p in paths if not options.only or any(o in p.name for o in options.only)]

    def work(path):
        head = read_header(path)
        run = run_case(path, head, options)
        return path, head, run, *judge(path, head, run, options)

    held = counted = 0
    log = {}
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for path, head, run, verdict, reasons in pool.map(work, paths):
            log[path.name] = {"verdict": verdict, "reasons": reasons, "status": run.status}
            if verdict is None:
                print(f"left out  {path.name}: {reasons[0]}", flush=True)
                continue
            counted += 1
            held += verdict
            if not verdict:
                print(f"{path.name} [{head.get('expect')}]: " + "; ".join(reasons), flush=True)
                if options.show:
                    print("\n".join("    | " + line for line in run.output.splitlines()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(log, indent=1))
    print(f"{held} of {counted} hold")
    return held != counted


if __name__ == "__main__":
    sys.exit(main())
