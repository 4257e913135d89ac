"""What the tests of studies share: tiny data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny_data import write_data


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A folder with tiny data in the form of the real ones."""
    return write_data(tmp_path_factory.mktemp("tiny"))
