"""All options of the suite: their names on the command line and in the ini file, and what they may be set to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DEFAULT_FUNCTIONS = 20

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_TRUTH = f"one of {', '.join((*_TRUE, *_FALSE))}"

# A native TOML file has values of several types; before pytest 9.2 an option can only have one.
_NUMBER_OR_TRUTH: Any = int | bool | str if pytest.version_tuple >= (9, 2) else "string"


class Settings(NamedTuple):  # a frozen dataclass takes four times as long to define, in each run of pytest
    """What a run was asked for.

    Attributes:
        summary: how many functions the summary lists, 0 for no summary.
        strict: whether a test that retraces fails.
        check_captures: whether to look, after each test, for functions that keep a stale value.
        outputs = self.json or self.timeline or self.html
        return bool(self.summary or self.strict or self.check_captures or self.strict_signatures or outputs)
        baseline: the file of accepted retraces, or None.
        update_baseline: whether to write that file instead of failing tests.
        allow: dotted names of functions, with `*`, that may retrace.
    """

    summary: int = 0
    strict: bool = False
    check_captures: bool = False
    strict_signatures: int = 0
    json: Path | None = None
    timeline: Path | None = None
    html: Path | None = None
    baseline: Path | None = None
    update_baseline: bool = False
    allow: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        outputs = self.json or self.timeline or self.html
        return bool(self.summary or self.strict or self.check_captures or self.strict_signatures or outputs)

    def header(self) -> str:
        """In words, for the head of the run."""
        words = []
        if self.strict:
            words.append("strict")
        if self.strict_signatures:
            words.append(f"at most {self.strict_signatures} signatures")
        if self.check_captures:
            words.append("checks captures")
        if self.baseline is not None:
            words.append(f"{'updates baseline' if self.update_baseline else 'baseline'} {self.baseline.name}")
        if self.summary:
            words.append(f"summary of {self.summary} function{'s' if self.summary > 1 else ''}")
        words += [f"{path.name}" for path in (self.json, self.timeline, self.html) if path is not None]
        return ", ".join(words)


def add(parser: pytest.Parser) -> None:
    """Register all options."""
    group = parser.getgroup("jitcache", "JAX traces and compiles of the whole run")
    group.addoption(
        "--jitcache-summary",
        nargs="?",
        const=str(DEFAULT_FUNCTIONS),
        metavar="N",
        help=f"after the run, list the N functions (default {DEFAULT_FUNCTIONS}) that cost most tracing and compiling time.",
    )
    group.addoption(
        "--jitcache-strict",
        action="store_true",
        default=None,
        help="fail each test in whose call a function of your own code is traced again for the same signature.",
    )
    group.addoption(
        "--no-jitcache-strict",
        action="store_false",
        dest="jitcache_strict",
        help="don't, although the ini file says so.",
    )
    group.addoption(
        "--jitcache-strict-signatures",
        metavar="N",
        help="fail each test in whose call a function of your own code has more than N signatures.",
    )
    parser.addini(
        "jitcache_strict_signatures", "the same as --jitcache-strict-signatures.", type=_NUMBER_OR_TRUTH, default=""
    )
    group.addoption(
        "--jitcache-check-captures",
        action="store_true",
        default=None,
        help="after each test, tell the functions of your own code that keep a stale value: something that was captured "
        "when they were traced has changed. With --jitcache-strict it is an error of the test in which it changed.",
    )
    for name, text in (
        ("json", "write all traces and compiles of the run to FILE, as JSON."),
        ("timeline", "write the trace, lower and compile spans of the run to FILE, for Perfetto or chrome://tracing."),
        ("html", "write a report of the run to look at to FILE."),
        ("baseline", "accept the retraces listed in FILE; implies --jitcache-strict."),
    ):
        group.addoption(f"--jitcache-{name}", metavar="FILE", help=text)
        parser.addini(f"jitcache_{name}", f"the same as --jitcache-{name}, relative to the root folder.", default="")
    group.addoption(
        "--jitcache-update-baseline",
        action="store_true",
        default=False,
        help="write the retraces of this run to the file of --jitcache-baseline instead of failing tests.",
    )
    parser.addini(
        "jitcache_summary",
        "true, false, or the number of functions to list (--jitcache-summary).",
        type=_NUMBER_OR_TRUTH,
        default="",
    )
    parser.addini("jitcache_strict", "true or false (--jitcache-strict).", type="bool", default=False)
    parser.addini("jitcache_check_captures", "true or false (--jitcache-check-captures).", type="bool", default=False)
    parser.addini(
        "jitcache_allow",
        "functions that may be traced again: dotted names such as package.module.function, with * for any part.",
        type="linelist",
    )


def separate_summary(args: list[str]) -> bool:
    """Give `--jitcache-summary` its default where a path and not a number follows; in place. Whether it did."""
    changed = False
    for index, argument in enumerate(args):
        if argument == "--":
            break
        following = args[index + 1] if index + 1 < len(args) else ""
        if argument == "--jitcache-summary" and not following.isdigit():
            args[index] = f"{argument}={DEFAULT_FUNCTIONS}"
            changed = True
    return changed


def read(config: pytest.Config) -> Settings:
    """What the run was asked for; the command line wins over the ini file.

    Raises:
        pytest.UsageError: a value is not allowed; one line that says which and what is.
    """
    option = config.option
    strict_option = getattr(option, "jitcache_strict", None)
    named_baseline = getattr(option, "jitcache_baseline", None) is not None
    update = bool(getattr(option, "jitcache_update_baseline", False))
    settings = Settings(
        summary=_summary(config),
        strict=_ini(config, "jitcache_strict", _TRUTH) if strict_option is None else strict_option,
        check_captures=bool(
            getattr(config.option, "jitcache_check_captures", None) or _ini(config, "jitcache_check_captures", _TRUTH)
        ),
        strict_signatures=_signatures(config),
        json=_path(config, "json"),
        timeline=_path(config, "timeline"),
        html=_path(config, "html"),
        baseline=_path(config, "baseline"),
        update_baseline=update,
        allow=_allow(config),
    )
    if update and settings.baseline is None:
        raise pytest.UsageError(
            "--jitcache-update-baseline needs the file to write: --jitcache-baseline FILE (or ini jitcache_baseline)."
        )
    if (named_baseline or update) and strict_option is False:
        raise pytest.UsageError(
            "--no-jitcache-strict and a baseline exclude each other: the baseline is for --jitcache-strict."
        )
    if named_baseline or update:
        settings = settings._replace(strict=True)
    if settings.strict and settings.baseline is not None and not update and not settings.baseline.exists():
        raise pytest.UsageError(
            f"the baseline {settings.baseline} does not exist; --jitcache-update-baseline writes it."
        )
    return settings


def _summary(config: pytest.Config) -> int:
    given = getattr(config.option, "jitcache_summary", None)
    name, value, allowed = "--jitcache-summary", given, "the number of functions to list, 0 or more"
    if given is None:
        allowed += ", true or false"
        name, value = "ini jitcache_summary", str(_ini(config, "jitcache_summary", allowed)).strip()
        if value.lower() in ("", *_FALSE[:3]):
            return 0
        if value.lower() in _TRUE[:3]:
            return DEFAULT_FUNCTIONS
    if not (value or "").strip().isdigit():
        raise pytest.UsageError(f"{name} is {allowed}; got {value!r}.")
    return int(str(value))


def _signatures(config: pytest.Config) -> int:
    name, value = "--jitcache-strict-signatures", getattr(config.option, "jitcache_strict_signatures", None)
    allowed = "the number of signatures that a function may have in one test, 1 or more"
    if value is None:
        name = "ini jitcache_strict_signatures"
        value = _ini(config, "jitcache_strict_signatures", allowed)
        if value in ("", None):
            return 0
    if not str(value).strip().isdigit() or int(str(value)) < 1:
        raise pytest.UsageError(f"{name} is {allowed}; got {str(value)!r}.")
    return int(str(value))


def _ini(config: pytest.Config, name: str, allowed: str) -> Any:
    """The value of an option in the ini file, which pytest itself may refuse; how it does depends on its version."""
    try:
        return config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"ini {name} is {allowed}: {error}.") from None


def _path(config: pytest.Config, name: str) -> Path | None:
    handed_down = getattr(config, "workerinput", {}).get("jitcache_paths", {})
    if name in handed_down:
        return Path(handed_down[name])
    value = getattr(config.option, f"jitcache_{name}", None)
    told, folder = f"--jitcache-{name}", config.invocation_params.dir
    if value is None:
        told, folder = f"ini jitcache_{name}", config.rootpath
        value = _ini(config, f"jitcache_{name}", "the name of a file")
        if not value:
            return None
    if not isinstance(value, str) or not value.strip():
        raise pytest.UsageError(f"{told} is the name of a file; got {value!r}.")
    path = (folder / Path(value).expanduser()).resolve()
    if path.is_dir():
        raise pytest.UsageError(f"{told} is the name of a file; {value!r} is a folder.")
    return path


def _allow(config: pytest.Config) -> tuple[str, ...]:
    names: list[str] = []
    allowed = "a list of dotted names such as package.module.function or package.*, one a line"
    for line in _ini(config, "jitcache_allow", allowed):
        name: Any = line.partition("#")[0].strip()
        if name and not re.fullmatch(r"[\w*-]+(\.[\w*<>-]+)*", name):  # test-it.py is a module, too
            raise pytest.UsageError(f"ini jitcache_allow is {allowed}; got {name!r}.")
        if name:
            names.append(name)
    return tuple(names)
