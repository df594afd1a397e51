"""Running a program as Python itself would: `__main__`, its arguments, its path, its exit status and its tracebacks."""

from __future__ import annotations

import importlib.util
import os
import runpy
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from pytest_jitcache.places import OURS

INTERRUPTED = 128 + signal.SIGINT


class NoProgram(Exception):
    """There is no such program; the message is one line for the user."""


class Program:
    """A script, or a module with `-m`.

    Raises:
        NoProgram: there is none of that name.
    """

    def __init__(self, name: str, arguments: Sequence[str], *, module: bool = False) -> None:
        self.name = name
        self.module = module
        self._arguments = list(arguments)
        if module:
            try:
                found = importlib.util.find_spec(name)
            except (ImportError, AttributeError, ValueError) as error:
                raise NoProgram(f"-m {name}: {error}") from None
            if found is None:
                raise NoProgram(f"-m {name}: no module of that name")
            return
        path = Path(name)
        if path.is_dir() or not path.exists():
            raise NoProgram(f"{name}: {'it is a folder' if path.is_dir() else 'no such file'}")
        try:
            self._source = path.read_bytes()
        except OSError as error:
            raise NoProgram(f"{name}: {error.strerror or error}") from None

    def run(self) -> int:
        """Run it to its end. Returns the exit status that Python would end with; prints the traceback of an exception
        as Python would, without our frames."""
        try:
            if self.module:
                self._run_module()
            else:
                self._run_script()
        except SystemExit as end:
            return _status(end.code)
        except BaseException as error:
            traceback = error.__traceback__
            while traceback is not None and (
                traceback.tb_frame.f_code.co_filename.startswith(OURS)
                or traceback.tb_frame.f_code.co_filename == __file__
            ):
                traceback = traceback.tb_next
            error.__traceback__ = traceback
            sys.excepthook(type(error), error, traceback)
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        return 0

    def _run_script(self) -> None:
        path = os.path.abspath(self.name)
        sys.argv = [self.name, *self._arguments]
        sys.path[0] = os.path.dirname(path)
        main = types.ModuleType("__main__")
        main.__file__ = path
        main.__builtins__ = __builtins__  # type: ignore[attr-defined]
        sys.modules["__main__"] = main
        code = compile(self._source, path, "exec", dont_inherit=True)
        exec(code, main.__dict__)  # noqa: S102

    def _run_module(self) -> None:
        sys.argv = [self.name, *self._arguments]
        sys.path[0] = os.getcwd()
        runpy.run_module(self.name, run_name="__main__", alter_sys=True)


def _status(code: object) -> int:
    """The exit status of `sys.exit(code)`; a text is printed, as Python does."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1
