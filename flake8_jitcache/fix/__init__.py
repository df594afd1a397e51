"""The fixer: `python -m flake8_jitcache fix` moves the jit where it belongs. It needs the extra `fix`.

One finding is fixed after another: `plan` decides what changes, or refuses with a reason; `rounds` applies the changes,
and takes back what breaks one of the guarantees.
"""

from flake8_jitcache.fix.command import main

__all__ = ["main"]
