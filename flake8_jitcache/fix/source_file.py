"""Bytes to text and back, byte for byte: encoding line, BOM, line ends and file mode stay as they are."""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import tempfile
import tokenize
from codecs import BOM_UTF8, lookup
from dataclasses import dataclass
from pathlib import Path

LINE_END = re.compile(r"\r\n|\r|\n")


class Unreadable(Exception):
    """A file can't be read as Python source; the message is the reason, one line."""


@dataclass(frozen=True)
class SourceFile:
    """Python source as text, with what is needed to turn it into the same bytes again."""

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def decode(cls, data: bytes) -> SourceFile:
        """Decode by BOM and encoding line, as Python does. Raises Unreadable."""
        bom = data.startswith(BOM_UTF8)
        body = data[len(BOM_UTF8) :] if bom else data
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(body).readline)[0]
            if bom and lookup(encoding).name != "utf-8":
                raise Unreadable(f"has a BOM of UTF-8 and an encoding line that says {encoding}")
            found = cls(body.decode(encoding), encoding, bom)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise Unreadable(f"can't be decoded: {error}") from None
        if found.encode(found.text) != data:
            raise Unreadable(f"does not come back byte for byte from {encoding}")
        return found

    def encode(self, text: str) -> bytes:
        """The bytes of a changed text, in the file's own encoding."""
        return (BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


def write(path: Path, data: bytes) -> None:
    """Replace a file's content at once: a reader sees the old or the new, never a part. The mode stays; of a symbolic
    link, the file it points to is replaced. Raises OSError."""
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
