"""Long tables: one row per answer, or per answered token.

`item, worker, label` is a crowd of single labels (PLAIN, one token per item). With a `token` or a
`position` column the rows of one item and worker are a sequence. Without a worker column the labels
are gold. CSV and TSV, Parquet, and DataFrames of any make.
"""

from __future__ import annotations

from goldspan.crowd.formats.long.reading import read, read_frame, sniff
from goldspan.crowd.formats.long.writing import write

__all__ = ["SUFFIXES", "SUMMARY", "read", "read_frame", "sniff", "write"]

SUMMARY = "one row per answer: item, worker, label (and token for sequences)"
SUFFIXES = (".csv", ".tsv", ".parquet")
