"""`jitcache run`: a program, watched."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_jitcache.run.program import NoProgram, Program
from pytest_jitcache.run.screen import Screen
from pytest_jitcache.suite import files, output_json, summary, timeline
from pytest_jitcache.suite.totals import Totals

USAGE = "jitcache run [options] script.py [arguments], jitcache run [options] -m package.module [arguments]"
UNUSABLE = 2  # exit status: the program was not run
FAILED = 3  # exit status: it ended well, and --fail-on found something
_FAULTS = ("retrace", "compile", "stale")


def parser() -> argparse.ArgumentParser:
    """The options of `jitcache run`."""
    made = argparse.ArgumentParser(prog="jitcache run", usage=USAGE, allow_abbrev=False, description=__doc__)
    made.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` does")
    made.add_argument("--quiet", action="store_true", help="tell no retrace while it runs, and end with one line")
    made.add_argument(
        "--fail-on", action="append", choices=_FAULTS, default=[], metavar="|".join(_FAULTS),
        help=f"end with status {FAILED} where a function was traced in vain, where anything was compiled (with a warm-up), "
        "or where a function keeps a stale value; may be given several times",
    )  # fmt: skip
    made.add_argument(
        "--warm-after", type=_seconds, metavar="SECONDS", help="count only what comes after so many seconds"
    )
    made.add_argument(
        "--after-step", type=_number, metavar="N", help="count only what comes after N calls of the function of --step"
    )
    made.add_argument(
        "--step", metavar="NAME", help="the name of the Python function that is a step, such as train_step"
    )
    for name, text in (
        ("json", "write all traces and compiles"),
        ("timeline", "write the spans, for Perfetto or chrome://tracing"),
        ("html", "write a report to look at"),
    ):
        made.add_argument(
            f"--{name}", type=Path, metavar="FILE", help=f"{text}; %%p in the name is the process's number"
        )
    made.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run a program and watch it. Returns the exit status: the program's own, unless `--fail-on` found something."""
    options = parser().parse_args(_before_program(arguments))
    given = list(arguments)[len(_before_program(arguments)) :]
    try:
        if options.module is not None:
            program = Program(options.module, given, module=True)
        elif given:
            program = Program(given[0], given[1:])
        else:
            raise NoProgram(f"no program was given; usage: {USAGE}")
        if (options.after_step is None) != (options.step is None):
            raise NoProgram("--after-step and --step go together: --after-step 10 --step train_step")
        outputs = _outputs(options)
    except NoProgram as error:
        print(f"jitcache: {error}", file=sys.stderr)
        return UNUSABLE
    return _watched(program, options, outputs)


def _before_program(arguments: Sequence[str]) -> list[str]:
    """The arguments that are ours: up to the script, or to the name of the module."""
    found: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        if not word.startswith("-") or word == "-":
            break
        found.append(word)
        if word == "--":
            break
        takes = word in ("-m", "--fail-on", "--warm-after", "--after-step", "--step", "--json", "--timeline", "--html")
        if takes:
            value = next(waiting, None)
            if value is not None:
                found.append(value)
            if word == "-m":
                break
    return found


def _outputs(options: argparse.Namespace) -> dict[str, Path]:
    """The files to write, seen to be writable before the program runs.

    Raises:
        NoProgram: one is not.
    """
    found = {}
    for name in ("json", "timeline", "html"):
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        path = Path(str(path).replace("%p", str(os.getpid()))).absolute()
        try:
            files.check(path)
        except OSError as error:
            raise NoProgram(f"--{name} {path} can't be written: {error.strerror or error}") from None
        found[name] = path
    return found


def _watched(program: Program, options: argparse.Namespace, outputs: dict[str, Path]) -> int:
    from pytest_jitcache.run.watching import Watch

    screen = Screen(sys.stderr, verbosity=-2 if options.quiet else 0)
    watch = Watch(program.name, None if options.quiet else screen, captures="stale" in options.fail_on)
    watch.begin()
    warm_up = _WarmUp(options, watch)
    try:
        status = program.run()
    finally:
        warm_up.stop()
        if warm_up.asked and not warm_up.over:
            watch.warm()
            screen.write_line("jitcache: the program ended before its warm-up did, so nothing was counted")
        totals = watch.end()
    if not watch.jax_seen:
        screen.write_line("jitcache: the program did not import JAX, so there was nothing to see")
    else:
        screen.write_line("")
        summary.show(screen, totals, summary.FUNCTIONS)
        summary.stale_values(screen, totals)
        _tell_cache(screen, watch.cache, totals.compiles)
    unwritten = write(outputs, totals, {"program": program.name, "persistent_cache": watch.cache.document()})
    for line in unwritten:
        screen.write_line(f"jitcache: {line}", red=True)
    faults = _faults(options, totals, warm_up.asked)
    for line in faults:
        screen.write_line(f"jitcache: --fail-on {line}", red=True)
    return status or (FAILED if faults else 1 if unwritten else 0)


def write(outputs: dict[str, Path], totals: Totals, extra: dict[str, Any]) -> list[str]:
    """Write the files; gives a line for each that could not be."""
    document = {**output_json.document(totals), **extra}
    unwritten = []
    for name, path in outputs.items():
        try:
            if name == "json":
                files.write(path, output_json.text(document))
            elif name == "timeline":
                files.write(path, timeline.render(totals))
            else:
                from pytest_jitcache import html

                files.write(path, html.render(document))
        except OSError as error:
            unwritten.append(f"{path} was not written: {error.strerror or error}")
    return unwritten


def _tell_cache(screen: Screen, cache: Any, compiles: int) -> None:
    if cache.hits or cache.misses:
        asked = max(cache.asked, cache.hits + cache.misses)
        screen.write_line(
            f"JAX's persistent cache was asked for {asked} compiles: {cache.hits} served (which saved {cache.saved:.1f} s), "
            f"{cache.misses} written anew, {max(0, asked - cache.hits - cache.misses)} neither; {max(0, compiles - asked)} compiles did not ask"
        )


def _faults(options: argparse.Namespace, totals: Totals, warmed: bool) -> list[str]:
    found = []
    wasted = sum(f.traces if warmed else f.wasted for f in totals.functions.values())
    if "retrace" in options.fail_on and wasted:
        found.append(f"retrace: {wasted} traces {'after the warm-up' if warmed else 'that had been made before'}")
    if "compile" in options.fail_on and totals.compiles:
        found.append(f"compile: {totals.compiles} compiles{' after the warm-up' if warmed else ''}")
    if "stale" in options.fail_on and totals.stale:
        found.append(f"stale: {', '.join(one['title'] for _, one in totals.stale)}")
    return found


class _WarmUp:
    """Tells the watch when the warm-up is over: after some seconds, or after some calls of a function."""

    def __init__(self, options: argparse.Namespace, watch: Any) -> None:
        self.asked = options.warm_after is not None or options.after_step is not None
        self.over = False
        self._watch = watch
        self._left = options.after_step
        self._name = options.step
        self._timer: threading.Timer | None = None
        if options.warm_after is not None:
            self._timer = threading.Timer(options.warm_after, self._end)
            self._timer.daemon = True
            self._timer.start()
        if self._left is not None:
            sys.setprofile(self._called)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if sys.getprofile() == self._called:
            sys.setprofile(None)

    def _called(self, frame: Any, event: str, _: object) -> None:
        if event == "return" and frame.f_code.co_name == self._name:
            self._left -= 1
            if self._left <= 0:
                sys.setprofile(None)
                self._end()

    def _end(self) -> None:
        self.over = True
        self._watch.warm()


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 up")
    return value


def _number(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)
