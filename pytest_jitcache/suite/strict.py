"""The verdict of `--jitcache-strict` on one test."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import pytest

from pytest_jitcache import report
from pytest_jitcache.errors import RetraceError
from pytest_jitcache.suite.session import Function, Group, Session, own_code

MARK = "jitcache_allow"


def findings(session: Session, allow: Sequence[str]) -> list[Group]:
    """What the running test retraces and may not, the worst first, one group a function."""
    found: dict[Function, Group] = {}
    for group in session.repeated():
        function = group[-1].function
        if not own_code(function):
            continue
        if is_allowed(function, allow):
            for record in group:
                record.allowed = True
            continue
        found.setdefault(function, group)
    return list(found.values())


def many_signatures(session: Session, limit: int, allow: Sequence[str]) -> RetraceError | None:
    """The failure of a test in which a function has more signatures than allowed; the one with most of them."""
    over = [
        traces
        for function, traces in session.signatures().items()
        if len(traces) > limit and own_code(function) and not is_allowed(function, allow)
    ]
    if not over:
        return None
    traces = max(over, key=len)
    return report.blame(RetraceError(report.many_signatures(traces, limit), traces), traces[limit])


def is_allowed(function: Function, allow: Sequence[str]) -> bool:
    """Whether the ini option `jitcache_allow` names the function."""
    name = f"{function.module}.{function.qualname}"
    names = (name, name.replace(".<locals>", ""))
    return any(fnmatch.fnmatchcase(one, pattern) for one in names for pattern in allow)


def error(found: Sequence[Group], explained: bool = False) -> RetraceError:
    """The failure, in the words of the fixture, with the way out at its end.

    Args:
        found: what `findings` has found.
        explained: whether JAX was asked for its own explanation of each trace.
    """
    worst, *others = found
    traces = []
    for record in worst:
        if record.trace is not None:
            record.tell_trace()
            traces.append(record.trace)
    text = report.retraced("traced", traces, 1, "signature", None)
    if others:
        names = ", ".join(f"{group[-1].function.name} {len(group)}x" for group in others[:5])
        text += f"\nalso: {names}{', ...' if len(others) > 5 else ''}"
    function = worst[-1].function
    name = f"{function.module}.{function.qualname}".replace(".<locals>", "")
    text += f"\nIf this is meant: @pytest.mark.{MARK}(reason=...) on the test, or `{name}` in the ini option {MARK}."
    return report.blame(RetraceError(text, traces, report.everything(traces, explained)), traces[-1])


def cannot_judge(missing: Sequence[str]) -> RetraceError:
    """The failure of a test in which JAX worked and does not tell what the verdict needs."""
    return RetraceError(report.cannot_judge("the test", missing, None))


def reason(item: pytest.Item) -> str | None:
    """Why a test may retrace, or None if it may not.

    Raises:
        pytest.fail.Exception: the mark has no reason; the text is shown alone.
    """
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    given = mark.kwargs.get("reason")
    if mark.args or set(mark.kwargs) != {"reason"} or not isinstance(given, str) or not given.strip():
        written = ", ".join([*map(repr, mark.args), *(f"{k}={v!r}" for k, v in mark.kwargs.items())])
        pytest.fail(
            f'{item.nodeid}: the mark {MARK} takes one argument, reason="why it is traced again"; got {MARK}({written}).',
            pytrace=False,
        )
    return given
