"""A format: single labels, one answer per line, `item | worker | label`."""

from __future__ import annotations

from pathlib import Path

from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions
from goldspan.crowd.atomic import write_text
from goldspan.crowd.source import Source
from goldspan.errors import Fault


def sniff(source: Source) -> bool:
    """Return whether the first line has three cells."""
    if source.is_folder or source.is_parquet:
        return False
    return source.text.value.split("\n", 1)[0].count(" | ") == 2


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read answers; every line that is not one is a fault, and all faults are raised together."""
    builder = CrowdBuilder(options, source.name, "pipe")
    for number, line in enumerate(source.text.value.splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) != 3:
            message = f"{len(cells)} cells; a line must be: item | worker | label"
            builder.faults.append(Fault(message, file=source.name, line=number, kind="cells"))
            continue
        name, worker, label = cells
        item = builder.item_place(name)
        if item is None:
            item = builder.add_item(name, [name], line=number)
        builder.add_answer(item, worker, [label], line=number)
    return builder.build(single=True)


def write(crowd: Crowd, path: Path) -> None:
    """Write one line per answer. What the format cannot hold is found by reading it back."""
    lines = []
    for item in crowd.item_ids.to_pylist():
        for worker, labels in crowd.answers_of(item).items():
            lines.append(f"{item} | {worker} | {labels[0]}\n")
    write_text(path, lines)
