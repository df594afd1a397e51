"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def check(path: Path) -> None:
    """See that a file can be written, before there is anything to write.

    Raises:
        OSError: it can't be.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    os.unlink(name)


def write(path: Path, text: str) -> None:
    """Write `text` to a file beside `path`, and rename it.

    Raises:
        OSError: it cannot be written; what was at `path` before is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
