"""The report to look at: one HTML file of a run, with no network, readable without JavaScript and better with it."""

from __future__ import annotations

from pytest_jitcache.html.page import render

__all__ = ["render"]
