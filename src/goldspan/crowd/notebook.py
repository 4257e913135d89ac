"""How items look in a notebook: their text with spans marked, and a crowd as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from goldspan._notebook import MOST_ITEMS, Html, MarkedSpan, block, counted, hue_of, marked, table
from goldspan.crowd.formats.span_exports import item_texts
from goldspan.crowd.model import Crowd
from goldspan.spans import Tagged, find_spans


def first_items(crowd: Crowd) -> Crowd:
    """Return the items that a notebook shows."""
    return crowd.select_items(np.arange(min(crowd.n_items, MOST_ITEMS)))


def marked_texts(
    crowd: Crowd, codes: NDArray[np.int16], confidence: Sequence[float] | None = None
) -> Iterator[Html]:
    """Return the text of every item with the spans of some tags marked.

    Args:
        crowd: The items.
        codes: int16 [n_tokens], their tags.
        confidence: [n_spans], of the spans in order; None where there is none.
    """
    spans = find_spans(Tagged(codes, crowd.offsets), crowd.tagset)
    bounds = np.searchsorted(spans.item, np.arange(crowd.n_items + 1)).tolist()
    start = (spans.start - crowd.offsets[spans.item]).tolist()
    end = (spans.end - crowd.offsets[spans.item]).tolist()
    kinds = spans.type.tolist()
    for n, text in enumerate(item_texts(crowd)):
        found = [
            MarkedSpan(
                text.bounds[start[i]][0],
                text.bounds[end[i] - 1][1],
                crowd.tagset.types[kinds[i]],
                hue_of(kinds[i]),
                None if confidence is None else float(confidence[i]),
            )
            for i in range(bounds[n], bounds[n + 1])
        ]
        yield marked(text.value, found)


def crowd_html(crowd: Crowd) -> str:
    """Return a crowd as HTML: its facts, and the first items with their answers and gold."""
    first = first_items(crowd)
    gold = np.full(first.n_tokens, -1, np.int16) if first.gold is None else first.gold
    ids, n_answers = first.item_ids.to_pylist(), np.diff(first.by_item.bounds).tolist()
    columns = {"item": ids}
    if first.is_classification:
        if first.texts is not None:
            columns["text"] = [Html(marked(text or "", [])) for text in first.texts.to_pylist()]
        columns["answers"] = [_votes(first, n) for n in range(first.n_items)]
        if first.gold is not None:
            columns["gold"] = list(map(_shown, first.labels_of(gold).to_pylist()))
    else:
        columns["text"] = list(marked_texts(first, gold))
        columns["answers"] = n_answers
    facts = [counted(crowd.n_items, "item"), counted(crowd.n_workers, "worker")]
    facts.append(counted(len(crowd.answers), "answer"))
    facts.append(f"{crowd.tagset.encoding}: {', '.join(crowd.tagset.types[:20])}")
    facts.append("gold" if crowd.gold is not None else "no gold")
    rows = zip(*columns.values(), strict=True)
    return block("Crowd", facts, table(list(columns), rows, crowd.n_items, "items"))


def _votes(crowd: Crowd, item: int) -> str:
    """Return which labels an item was given how often: "yes ×2, no ×1"."""
    answers = crowd.by_item[item]
    labels = crowd.labels_of(crowd.latest.codes[crowd.latest.offset[answers]]).to_pylist()
    counts = Counter(label for label in labels if label is not None).most_common()
    return ", ".join(f"{label} ×{count}" for label, count in counts)


def _shown(label: object) -> str | None:
    """Return a label as text, so that it is not aligned as a number."""
    return None if label is None else str(label)
