"""UIMA CAS as JSON: see `cas.py`."""

from __future__ import annotations

from pathlib import Path

from goldspan.crowd.formats.cas import check, is_json, read_documents, write_as
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

__all__ = ["check", "read", "sniff", "write"]


def sniff(source: Source) -> bool:
    """Return whether this is a CAS, or a folder of them."""
    return is_json(source)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a file, a folder or an archive."""
    return read_documents(source, "cas-json", ".json", options)


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write a folder with a file per document and annotator."""
    write_as(crowd, path, ".json", soft)
