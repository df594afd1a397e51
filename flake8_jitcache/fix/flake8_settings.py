"""flake8's own configuration: which files it would check, our options in it, and which findings it would show.

The only module of the fixer that touches flake8. `processor`, `style_guide` and `discover_files` are the same in flake8 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flake8.discover_files import expand_paths
from flake8.exceptions import EarlyQuit, ExecutionError
from flake8.exceptions import PluginExecutionFailed as _PluginFailed
from flake8.options.parse_args import parse_args
from flake8.processor import FileProcessor
from flake8.style_guide import Decision, StyleGuideManager
from flake8.violation import Violation

from flake8_jitcache.findings import Finding
from flake8_jitcache.fix.source_file import LINE_END
from flake8_jitcache.options import Options


class BadConfiguration(Exception):
    """flake8 does not accept its configuration or command line; the message is one line."""


class Flake8Settings:
    """What flake8 makes of its configuration files and of command-line options. Raises BadConfiguration."""

    def __init__(self, arguments: Sequence[str]) -> None:
        try:
            _, self._options = parse_args(list(arguments))
            self.options = Options.parse(self._options)
        except (ExecutionError, EarlyQuit, _PluginFailed) as error:
            raise BadConfiguration(" ".join(str(error).split())) from None
        self._last: tuple[tuple[str, str], tuple[bool, FileProcessor]] | None = None
        self._guides = StyleGuideManager(self._options, formatter=None)

    @property
    def display_name(self) -> str:
        """The name under which standard input goes."""
        return str(self._options.stdin_display_name)

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """The files that flake8 would check, those of stubs left out."""
        found = expand_paths(
            paths=list(paths),
            stdin_display_name=self._options.stdin_display_name,
            filename_patterns=self._options.filename,
            exclude=(*self._options.exclude, *self._options.extend_exclude),
        )
        seen: set[str] = set()
        for path in found:
            if path not in seen and not path.endswith(".pyi"):
                seen.add(path)
                yield path

    def selects(self, code: str, path: str) -> bool:
        """Whether flake8 shows a code in a file."""
        guide = self._guides.style_guide_for(path)
        return bool(guide.should_report_error(code) is Decision.Selected)

    def is_silenced(self, path: str, text: str, finding: Finding) -> bool:
        """Whether a comment in the text silences a finding: `# noqa` on its lines, `# flake8: noqa` in the file."""
        whole, processor = self._read(path, text)
        if whole:
            return True
        line = processor.noqa_line_for(finding.line)
        violation = Violation(finding.code, path, finding.line, finding.column + 1, finding.text, line or "")
        return bool(violation.is_inline_ignored(self._options.disable_noqa))

    def _read(self, path: str, text: str) -> tuple[bool, FileProcessor]:
        """Whether a whole file is silenced, and flake8's view of its lines; the last answer is kept."""
        if self._last is None or self._last[0] != (path, text):
            processor = FileProcessor(path, self._options, lines=_split(text))
            self._last = (path, text), (bool(processor.should_ignore_file()), processor)
        return self._last[1]


def _split(text: str) -> list[str]:
    """Lines as Python counts them; `str.splitlines` knows more line ends."""
    lines = [line + "\n" for line in LINE_END.sub("\n", text).split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
