"""Crowds: items, workers, answers and gold; reading, writing, agreement."""

from karat.crowd.agreement import Agreement, agreement
from karat.crowd.builder import CrowdBuilder
from karat.crowd.io import read_crowd, write_crowd
from karat.crowd.model import Answers, Crowd, Tagset
from karat.crowd.options import ReadOptions
from karat.crowd.report import ImportReport

__all__ = [
    "Agreement",
    "Answers",
    "Crowd",
    "CrowdBuilder",
    "ImportReport",
    "ReadOptions",
    "Tagset",
    "agreement",
    "read_crowd",
    "write_crowd",
]
