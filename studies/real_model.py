"""What a real language model gives on sentences of the NER crowd, asked in four ways.

    .venv-llm/bin/python -m studies.real_model --data ../shared/data

`make test-llm` makes the environment: a small base model that llama.cpp serves on this machine. It
labels sentences of the val half, and is shown sentences of other articles with their gold. `--url`
names another endpoint.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from examples.llama_server import serving
from goldspan.annotators import AnnotationTask, ItemAnswer, open_annotator
from goldspan.annotators.base import Annotator, Usage
from goldspan.annotators.labelling import items_of
from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans.scoring import score
from studies.purity.crowds import SPLIT
from studies.table import Table

SHOWN = 5
"""Examples in a prompt."""
SHORTEST, LONGEST = 5, 30
"""Tokens of a sentence."""
ASKED = "Mark names of persons (PER), organisations (ORG), places (LOC) and others (MISC) in news."
WAYS = [(style, form) for style in ("chat", "completion") for form in ("tokens", "quotes")]
COLUMNS = ("prompt", "form", "answers", "in part", "cut", "invalid", "none placed", "spans placed",
           "not placed", "F1", "tokens in", "out", "seconds")  # fmt: skip
Gold = Mapping[str, tuple[str, ...]]


def drawn(data: Path, n: int) -> tuple[AnnotationTask, list[PoolItem], Gold]:
    """Draw sentences of the val half, and as many of other articles to choose examples from."""
    crowd = read_crowd(data / SPLIT)
    tags = crowd.tagset.decode(crowd.gold_tagged)
    items = items_of(crowd)
    gold = {item.id: tuple(map(str, row)) for item, row in zip(items, tags, strict=True)}
    fit = [
        item for item in items
        if item.attributes["split"] == "val" and SHORTEST <= len(item.tokens) <= LONGEST
    ]  # fmt: skip
    order = [fit[k] for k in np.random.default_rng(0).permutation(len(fit))]
    chosen = order[:n]
    articles = {item.group for item in chosen}
    others = [item for item in order[n:] if item.group not in articles][:n]
    known = tuple((item, gold[item.id]) for item in others)
    return AnnotationTask(crowd.tagset, ASKED, known, send_text=True), chosen, gold


def answers_of(model: Annotator, items: list[PoolItem]) -> list[ItemAnswer]:
    """Return the answers to all items, however many in a row are none."""
    while True:
        try:
            return list(model.label(items))
        except InputError as error:  # what was answered is kept: it goes on behind it
            if "could be used" not in str(error):
                raise


def row_of(
    answers: list[ItemAnswer], items: list[PoolItem], task: AnnotationTask, gold: Gold
) -> list[Any]:
    """Return how many answers there are, and how good they are; a missing one has no spans."""
    pairs = list(zip(answers, items, strict=True))
    given = [a.labels(task.codec, len(i.tokens)) or ["O"] * len(i.tokens) for a, i in pairs]
    said = [[tag or "O" for tag in row] for row in given]
    f1 = score([gold[item.id] for item in items], said).f1
    there = [answer for answer in answers if not answer.missing]
    lost = sum("none of its spans" in answer.missing for answer in answers)
    cut = sum(answer.missing.startswith("cut") for answer in answers)
    used = sum((answer.usage for answer in answers), Usage())
    return [
        len(there), sum(bool(one.unplaced) for one in there), cut,
        len(answers) - len(there) - cut - lost, lost,
        sum(len(one.spans or ()) for one in there), sum(len(one.unplaced) for one in answers),
        f1, used.input_tokens, used.output_tokens,
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real data sets")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--threads", default="2", help="of the model")
    parser.add_argument("--url", help="an endpoint; by default the small model is served here")
    parser.add_argument("--model", default="gemma-3-270m")
    given = parser.parse_args()
    task, items, gold = drawn(given.data, given.sentences)
    rows = []
    with ExitStack() as opened:
        url = given.url or opened.enter_context(serving("--threads", given.threads))
        for style, form in WAYS:
            entry = {
                "kind": "llm", "base_url": url, "model": given.model, "style": style, "form": form,
                "examples": SHOWN, "attempts": 1, "max_output": 200, "concurrency": 1,
                "seconds": 600.0,
            }  # fmt: skip
            model = opened.enter_context(open_annotator(entry, task))
            began = time.monotonic()
            answers = answers_of(model, items)
            seconds = round(time.monotonic() - began)
            rows.append((style, form, *row_of(answers, items, task, gold), seconds))
            print(*rows[-1], flush=True)
    print(Table(f"{given.model}, {len(items)} sentences", COLUMNS, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
