"""Which files may have something to find, by their words: most files end here, before their tree is looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flake8_jitcache.options import Options

# The last parts of the names in `facts.known.JITS`; a test holds the two together.
WORDS = ("jit", "pjit", "pmap", "filter_jit", "filter_pmap", "named_jit", "named_pjit", "variable_jit")
_JIT = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
# JIT401 alone needs no jit.
_EAGER_LOOP = "JIT401"
_LOOPING = ("lax", "nnx", "value_fn", "jaxopt")


def mentions_a_jit(lines: Sequence[str], options: Options, asked_for: frozenset[str] = frozenset()) -> bool:
    """Whether a file has a word without which there is nothing to find."""
    text = "".join(lines)
    if (_has(text, "jit") or "pmap" in text) and _JIT.search(text):
        return True
    if _EAGER_LOOP in asked_for and any(word in text for word in _LOOPING):
        return True
    return any(name.rstrip("*").rpartition(".")[2] in text for name in options.jit_names)


def _has(text: str, word: str) -> bool:
    """Whether a word that begins with a rare letter is in a text, several times faster than `in`."""
    at = text.find(word[0])
    while at >= 0:
        if text.startswith(word, at):
            return True
        at = text.find(word[0], at + 1)
    return False
