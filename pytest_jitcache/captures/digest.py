"""The content of a numpy array in a few bytes."""

from __future__ import annotations

import hashlib
from typing import Any


def digest(array: Any) -> str:
    """Equal for two arrays of one dtype and shape that hold the same, bit by bit."""
    import numpy as np  # which is there where an array is; the suite's options are there without it

    data = np.ascontiguousarray(array)
    if data.dtype.hasobject:
        return repr(data.tolist())[:1000]
    return hashlib.blake2b(data.tobytes(), digest_size=16).hexdigest()


_NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


def digests(array: Any) -> tuple[str, ...]:
    """The digest of an array, and the one of what JAX makes of it where it computes with 32 bits."""
    narrow = _NARROW.get(str(array.dtype))
    return (digest(array), digest(array.astype(narrow))) if narrow is not None else (digest(array),)
