"""Why a finding is not fixed."""

from __future__ import annotations


class Refused(Exception):
    """A finding can't be fixed with the meaning kept; the message is the reason, one line."""
