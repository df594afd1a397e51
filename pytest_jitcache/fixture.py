"""The type of the fixture, for the annotations of tests. Light: it loads neither the guard nor JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_jitcache.guard.forms import traced_once
    from pytest_jitcache.guard.options import Keywords

P = ParamSpec("P")
R = TypeVar("R")


class AssertTracedOnce(Protocol):
    """What the fixture `assert_traced_once` is: a wrap keeps the parameters and the result of the function.

    `def test_step(assert_traced_once: AssertTracedOnce) -> None: ...`
    """

    @overload
    def __call__(self, function: Callable[P, R], /, **options: Unpack[Keywords]) -> traced_once[P, R]: ...
    @overload
    def __call__(self, /, *functions: Callable[..., Any], **options: Unpack[Keywords]) -> traced_once[..., Any]: ...
