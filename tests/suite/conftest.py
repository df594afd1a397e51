"""The fixture of all tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_suite import Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)
