"""Reading a wide table: crowd.tsv.gz with its 47 worker columns, against pandas.read_csv."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd

from goldspan.crowd import read_crowd
from goldspan.old_name import variable
from pairs import Row, compare

DATA = Path(variable("GOLDSPAN_DATA") or Path(__file__).parents[2] / "shared" / "data")
CROWD = DATA / "ner_mturk" / "crowd.tsv.gz"


def run() -> list[Row]:
    """Run it, if the real data are there."""
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
            at_most=4,
            rounds=9,
            note=note,
        )
    ]


def _path() -> Any:
    return CROWD


def _peer(path: Any) -> Any:
    return pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE)
