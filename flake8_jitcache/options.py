"""The options, in one place: their names, their help, and what they may be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

_DOTTED = re.compile(r"(?:\*|[^\W\d]\w*\*?)(?:\.(?:\*|[^\W\d]\w*\*?))*")

HELP = {
    "jit_names": "Dotted names of your own functions that jit what they are given, `*` allowed (e.g. mylib.compiled)",
    "cache_decorators": "Dotted names of decorators under which a function runs once per key, `*` allowed",
    "run_once_names": "Names of functions that run once in a process, `*` allowed (e.g. launch, Trainer.prepare)",
    "hot_names": "Names of functions that run often, `*` allowed (e.g. tick, Agent.act)",
}
LOOP_LIMIT_HELP = "JIT303: how many literal values a loop may have before a static argument from it is reported"


class BadOption(ValueError):
    """An option has a value that it may not have; the message is one line for the user."""


class OptionManager(Protocol):
    """What we need of flake8's option manager."""

    def add_option(self, *args: Any, **kwargs: Any) -> None: ...

    def extend_default_ignore(self, error_codes: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class Options:
    """The options, checked."""

    jit_names: tuple[str, ...] = ()
    cache_decorators: tuple[str, ...] = ()
    run_once_names: tuple[str, ...] = ()
    hot_names: tuple[str, ...] = ()
    static_loop_limit: int = field(default=4)

    @staticmethod
    def register(manager: OptionManager) -> None:
        """Tell flake8 what there is, for the command line and for its configuration file."""
        for name, text in HELP.items():
            manager.add_option(
                flag(name),
                default="",
                metavar="names",
                parse_from_config=True,
                comma_separated_list=True,
                help=text,
            )
        manager.add_option(
            flag("static_loop_limit"),
            default="4",
            metavar="n",
            parse_from_config=True,
            help=LOOP_LIMIT_HELP + " (default: %(default)s)",
        )

    @classmethod
    def parse(cls, namespace: argparse.Namespace) -> Options:
        """Check what was given. Raises BadOption with one line that names the value and what is allowed."""
        values: dict[str, Any] = {}
        for known in fields(cls):
            given = getattr(namespace, f"jitcache_{known.name}", None)
            if given is None:
                continue
            if known.name == "static_loop_limit":
                values[known.name] = _count(known.name, given)
            else:
                values[known.name] = _dotted_names(known.name, given.split(",") if isinstance(given, str) else given)
        return cls(**values)


def flag(name: str) -> str:
    """The option's name on the command line."""
    return "--jitcache-" + name.replace("_", "-")


def _dotted_names(option: str, given: Iterable[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given if name.strip())
    for name in names:
        if not _DOTTED.fullmatch(name):
            raise BadOption(
                f"{flag(option)}: {name!r} is not a dotted name; allowed are names such as pkg.module.function, "
                "with * for one or more parts or for the end of one"
            )
    return names


def _count(option: str, given: object) -> int:
    if not re.fullmatch(r"\d+", str(given).strip()):
        raise BadOption(f"{flag(option)}: {given!r} is not allowed; give a whole number from 0 up")
    return int(str(given))
