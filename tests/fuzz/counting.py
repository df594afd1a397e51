"""What a random program imports: its arguments, and the counter that each of its bodies calls.

A trace is one execution of a body with tracers, so the counter counts traces itself. It knows nothing of the plugin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

F3, F4 = jnp.arange(3, dtype=jnp.float32), jnp.arange(4, dtype=jnp.float32)
I3, W3 = jnp.arange(3, dtype=jnp.int32), jnp.full(3, 1.0)  # W3 is weakly typed
N3, D3 = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float64)
F13, F14, I13 = F3[None], F4[None], I3[None]
F23, F24, I23 = jnp.stack([F3, F3]), jnp.stack([F4, F4]), jnp.stack([I3, I3])
R, Z = jnp.float32(0.5), jnp.float32(0)
Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Equal:
    """A static argument that compares by value."""

    k: int = 2


class Fresh:
    """A static argument that compares by identity."""


class Kept:
    """The same, of which two live as long as the process."""


KEPT_A, KEPT_B = Kept(), Kept()


def fresh_function() -> Callable[[Any], Any]:
    return lambda v: v


class Oops(Exception):
    """What a body raises that is told to."""


@dataclasses.dataclass(frozen=True)
class Event:
    """One execution of a body with tracers."""

    body: str
    signature: Any  # what the design calls the signature, as the body itself sees its arguments
    step: int
    turn: int  # a number of its own for each time that a step ran
    epoch: int  # how often the caches had been cleared


class Record:
    """The events of one program."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.turns = itertools.count()
        self.epoch = 0
        self.kept: list[Any] = []
        self.now = threading.local()
        self.steps: set[int] = set()


record = Record()


def reset() -> Record:
    global record
    record = Record()
    return record


def at(step: int) -> None:
    """This step of the program begins, on this thread."""
    record.steps.add(step)
    record.now.step, record.now.turn, record.now.fails = step, next(record.turns), False


def _leaf(value: Any) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return str(value.dtype), tuple(value.shape)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (Fresh, Kept, type(lambda: 0))):
        return "A" if value is KEPT_A else "B" if value is KEPT_B else f"fresh {type(value).__name__}"
    return type(value).__name__, repr(value)


def ran(body: str, *args: Any) -> bool:
    """Called by each body with its arguments."""
    leaves, tree = jax.tree_util.tree_flatten(args)
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return True
    if getattr(record.now, "fails", False):
        raise Oops
    signature = str(tree), tuple(_leaf(leaf) for leaf in leaves)
    record.events.append(Event(body, signature, record.now.step, record.now.turn, record.epoch))
    return True


def keep(value: Any) -> Any:
    record.kept.append(value)
    return value


def clear_caches() -> None:
    record.epoch += 1
    jax.clear_caches()


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """Bodies that are traced in it raise; the error ends here."""
    record.now.fails = True
    with contextlib.suppress(Oops):
        yield
    record.now.fails = False


def in_thread(call: Callable[[], Any], crew: int = 1) -> None:
    """Run it on threads of their own, at once; the first error is raised here."""
    step, errors, gate = record.now.step, [], threading.Barrier(crew)

    def go() -> None:
        record.now.step, record.now.turn = step, next(record.turns)
        gate.wait()
        try:
            call()
        except (AssertionError, Oops) as error:
            errors.append(error)

    threads = [threading.Thread(target=go) for _ in range(crew)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def x64() -> Any:
    if hasattr(jax, "enable_x64") and callable(jax.enable_x64):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def out(traces: Any) -> None:
    """The program shows the record of its guard."""


__all__ = [name for name in dir() if not name.startswith("_")]
