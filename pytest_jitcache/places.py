"""Where code comes from: the user's own, an installed library's, or the machinery of tracing itself."""

from __future__ import annotations

import enum
import functools
import importlib.util
import os
import sys
import sysconfig
from types import CodeType
from typing import NamedTuple

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = tuple(os.path.abspath(p) + os.sep for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITE = tuple(os.path.abspath(p) + os.sep for p in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

# Packages whose frames stand between a jit and the function that is jitted; none of their own functions is a "body".
_MACHINERY = ("jax", "jaxlib", "equinox", "flax", "jaxtyping", "beartype", "typeguard", "chex")


class Body(NamedTuple):
    """A body in the source. Code objects of two files that are copies of each other are equal; these are not."""

    filename: str
    code: CodeType

    @classmethod
    def of(cls, code: CodeType) -> Body:
        return cls(code.co_filename, code)


@functools.cache
def _folders(package: str) -> tuple[str, ...]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ()
    return tuple(os.path.abspath(p) + os.sep for p in (spec.submodule_search_locations or ())) if spec else ()


class Whose(enum.IntEnum):
    """Whose code is it? The further up, the nearer to the user."""

    JAX = 0
    WRAPPER = 1  # a library around JAX
    CARRIER = 2  # the standard library, this plugin
    LIBRARY = 3  # installed, and none of the above
    USER = 4


@functools.cache
def whose(filename: str) -> Whose:
    """Whose the code of a file is."""
    if filename.startswith((*_folders("jax"), *_folders("jaxlib"))):
        return Whose.JAX
    if any(filename.startswith(_folders(package)) for package in _MACHINERY if _folders(package)):
        return Whose.WRAPPER
    if filename.startswith(("<frozen", "<@beartype")):
        return Whose.CARRIER
    if filename.startswith((OURS, *_STDLIB)) and not filename.startswith(_SITE):
        return Whose.CARRIER
    installed = filename.startswith(_SITE) or f"{os.sep}site-packages{os.sep}" in filename
    return Whose.LIBRARY if installed else Whose.USER


def in_jax(filename: str) -> bool:
    """Whether a file belongs to JAX itself."""
    return whose(filename) is Whose.JAX


def is_wrapping(filename: str) -> bool:
    """Whether a file belongs to JAX or to a library around it: machinery without the standard library and this plugin."""
    return whose(filename) <= Whose.WRAPPER


def is_machinery(filename: str) -> bool:
    """Whether code of this file only carries a call on: JAX, wrappers around it, the standard library and this plugin."""
    return whose(filename) <= Whose.CARRIER


def is_library(filename: str) -> bool:
    """Whether a file was installed (site-packages, the standard library) and is not the user's own."""
    return whose(filename) <= Whose.LIBRARY


def show(filename: str) -> str:
    """A path as short as it can be and still be opened from the current folder."""
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive
        return filename
    return filename if relative.startswith("..") or filename.startswith("<") else relative


if sys.version_info >= (3, 11):

    def qualname(code: CodeType) -> str:
        return code.co_qualname

else:

    def qualname(code: CodeType) -> str:
        return code.co_name
