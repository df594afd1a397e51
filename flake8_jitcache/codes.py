"""The one table of codes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One rule: its code, its name in words, one line on what it finds, and whether it is shown without being asked for."""

    code: str
    name: str
    summary: str
    default: bool = True


CODES: dict[str, Code] = {
    code.code: code
    for code in (
        Code("JIT101", "fresh-lambda", "a jitted lambda is made on each call or iteration and dropped"),
        Code("JIT102", "fresh-partial", "a jitted partial is made on each call or iteration and dropped"),
        Code("JIT103", "fresh-def", "a jitted nested function is made on each call or iteration and dropped"),
        Code("JIT104", "bound-method", "a method is looked up on an instance and jitted on each call or iteration"),
        Code("JIT105", "fresh-transform", "another call's result is jitted on each call or iteration and dropped"),
        Code("JIT106", "dropped-factory", "an uncached factory of a jitted function is called and its product dropped"),
        Code("JIT107", "rewrapped-function", "a stable function is wrapped anew on each call or iteration"),
        Code(
            "JIT191", "amortised-jit", "a jit is made on each call but used in a loop, or in code that runs once", False
        ),
        Code("JIT192", "retained-jit", "a jit is made in a function body and kept", False),
        Code("JIT201", "captured-global-rebound", "jitted code reads a global that is rebound elsewhere"),
        Code("JIT202", "captured-local-rebound", "jitted code reads an enclosing local that is rebound afterwards"),
        Code("JIT203", "captured-attribute", "jitted code reads `self.x`, which is assigned outside `__init__`"),
        Code("JIT204", "captured-mutable", "jitted code reads a captured object that is mutated elsewhere"),
        Code("JIT205", "impure-read", "jitted code reads random numbers, the time, an iterator or the environment"),
        Code("JIT291", "may-go-stale", "a captured value may go stale, which is not certain in this file", False),
        Code("JIT301", "unhashable-static", "a static argument or its default is unhashable"),
        Code("JIT302", "unknown-static", "`static_argnums` or `static_argnames` fit no parameter"),
        Code("JIT303", "static-in-loop", "a loop variable is passed as a static argument"),
        Code("JIT304", "fresh-static", "a new object is passed as a static argument each time"),
        Code("JIT401", "fresh-loop-body", "an eager `lax` loop gets a fresh body each time", False),
        Code("JIT501", "shape-in-loop", "a jitted function gets an array whose length is the loop variable", False),
    )
}


def rank(code: str) -> tuple[int, int]:
    """The order in which codes win a place where several apply: what is on by default first, then wrong results
    (JIT2xx), then retraces (JIT1xx), then static arguments (JIT3xx); within a family, the order of the table."""
    order = "213"
    family = order.index(code[3]) if code[3] in order else len(order) + int(code[3])
    return (0 if CODES[code].default else 100) + family, int(code[3:])


# What `python -m flake8_jitcache fix` repairs.
FIXABLE = tuple(code for code in CODES if "JIT101" <= code <= "JIT107")
