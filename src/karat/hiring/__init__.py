"""Whom to hire, how many to ask, and what it costs (Li and Liu 2015; MATH section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.hiring.beta import Reliability

__all__ = ["Reliability"]

_HOME = {"Reliability": "karat.hiring.beta"}

__getattr__ = lazy(__name__, _HOME)
