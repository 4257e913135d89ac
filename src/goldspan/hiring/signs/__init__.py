"""Signs of careless work: one search per file, each sign with its evidence."""

from __future__ import annotations

from goldspan.hiring.signs.base import Sign, Thresholds
from goldspan.hiring.signs.find import find_signs

__all__ = ["Sign", "Thresholds", "find_signs"]
