"""Reading: crowd.tsv.gz, a wide table, against pandas.read_csv; span answers against json.loads.

The span answers are simulated: 100,000 of them to 20,000 texts of about 20 words, four spans each.
Whatever reads them has to parse the JSON, which is all that the peer does.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from goldspan.crowd import read_crowd
from pairs import Row, compare

DATA = Path(os.environ.get("GOLDSPAN_DATA") or Path(__file__).parents[2] / "shared" / "data")
CROWD = DATA / "ner_mturk" / "crowd.tsv.gz"


N_ITEMS, N_ANSWERS, N_SPANS = 20_000, 5, 4
SECONDS = 4.0
"""What 100,000 span answers may take."""


def run() -> list[Row]:
    """Run all of it; the wide table only if the real data are there."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_wide_table(), *_span_answers(Path(folder))]


def _wide_table() -> list[Row]:
    if not CROWD.exists():
        print(f"left out: reading a crowd (no file {CROWD})")
        return []
    crowd = read_crowd(CROWD)
    answers = crowd.answers
    per_answer = (answers.nbytes - answers.codes.nbytes) / len(answers)
    note = f"a Crowd takes 2 bytes per answered token and {per_answer:.1f} per answer"
    return [
        compare(
            "read crowd.tsv.gz (pandas.read_csv)",
            _path,
            read_crowd,
            _peer,
            at_most=2,
            rounds=9,
            note=note,
        )
    ]


def _path() -> Any:
    return CROWD


def _peer(path: Any) -> Any:
    return pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE)


def _span_answers(folder: Path) -> list[Row]:
    rows = []
    for name, nested in (("an answer per line", False), ("an item per line", True)):
        path = folder / f"{nested}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in _lines(nested=nested))
        row = compare(
            f"read 100,000 span answers, {name} (json.loads)",
            lambda path=path: path,  # type: ignore[misc]
            read_crowd,
            _parse,
            rounds=3,
        )
        kept = row.ours <= SECONDS
        rows.append(Row(**{**vars(row), "wanted": f"≤ {SECONDS:g} s", "ok": kept}))
    return rows


def _lines(*, nested: bool) -> Iterator[dict[str, Any]]:
    """Yield lines of span JSONL."""
    rng = np.random.default_rng(0)
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz"])
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, 3000)]
    for n in range(N_ITEMS):
        text = [words[i] for i in rng.integers(len(words), size=rng.integers(16, 25))]
        starts = np.cumsum([0, *(len(word) + 1 for word in text)]).tolist()
        answers = []
        for k in range(N_ANSWERS):
            first = 2 * np.sort(rng.choice(len(text) // 2, N_SPANS, replace=False))
            last = first + rng.integers(2, size=N_SPANS)
            kinds = rng.choice(["LOC", "MISC", "ORG", "PER"], N_SPANS).tolist()
            spans = [
                {"type": kind, "start": starts[a], "end": starts[b + 1] - 1}
                for kind, a, b in zip(kinds, first.tolist(), last.tolist(), strict=True)
            ]
            answers.append({"worker": f"w{5 * rng.integers(10) + k}", "spans": spans})
        item = {"item": f"t{n}", "text": " ".join(text)}
        if nested:
            yield {**item, "answers": answers}
        else:
            yield from ({**item, **answer} for answer in answers)


def _parse(path: Any) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
