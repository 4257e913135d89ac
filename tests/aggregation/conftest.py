"""What the tests of aggregation share."""

from __future__ import annotations

import pytest

import goldspan


@pytest.fixture(scope="session")
def crowd(root):
    """Return the example: 150 sentences of 20 documents, seven workers, with gold."""
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")
