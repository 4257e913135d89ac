"""What of a crowd does not come back from a file that shows texts with spans."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from goldspan.crowd.formats.span_exports import answer_rows, attribute_rows, gold_rows, item_texts
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import MISSING
from goldspan.spans import Codec

MAX_MOMENT = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def losses(crowd: Crowd, holds: Collection[str]) -> list[str]:
    """Name what of a crowd does not come back from a text with spans.

    Args:
        crowd: The crowd.
        holds: What the format has a place for: "groups", "attributes", "tokens", "silence" (an
            answer without a label, for items with a single label), "attempts", "started",
            "submitted".
    """
    lost = [*_lost_tags(crowd, holds), *_lost_gold(crowd)]
    lost += [*_lost_answers(crowd, holds), *_lost_texts(crowd, holds)]
    if not crowd.n_items:
        lost.append("a crowd without items (it is refused when it is read)")
    if crowd.groups is not None and "groups" not in holds:
        lost.append("the documents of items")
    if crowd.groups is not None and crowd.groups.null_count == crowd.n_items:
        lost.append("a column of documents without a value")
    if crowd.attributes is not None:
        if "attributes" not in holds or not crowd.attributes.num_columns:
            lost.append("attributes of items")
        elif attribute_rows(crowd) != crowd.attributes.to_pylist():
            lost.append("attributes that JSON has no value for (dates become text, infinity null)")
    return lost


def _lost_tags(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    codec, said, known = crowd.tagset, answer_rows(crowd), gold_rows(crowd)
    used = {span.type for row in [*said.spans, *known.spans] for span in row}
    if not codec.rules.is_plain:
        if codec.encoding != "BIO":
            yield f"the encoding {codec.encoding} (read it back with encoding={codec.encoding!r})"
        n_bad = int((~said.exact).sum() + (~known.exact).sum())
        if n_bad:
            yield f"{n_bad} sequences of tags that break the rules of {codec.encoding}"
    elif not crowd.is_classification:
        yield "single labels of items of several tokens (they become spans)"
    elif not used:
        yield "the encoding (there is no label that shows it)"
    if codec.rules.is_plain and set(MISSING) & set(codec.tags):
        yield f"labels that mean 'no label' when they are read ({', '.join(filter(None, MISSING))})"
    if set(codec.tags) != set(Codec.from_types(used, codec.encoding).tags):
        yield "tags that nobody used"
    if any(said.skipped) and not (crowd.is_classification and "silence" in holds):
        yield "tokens that a worker skipped"


def _lost_gold(crowd: Crowd) -> Iterator[str]:
    if crowd.gold is None:
        return
    sizes = np.diff(crowd.offsets).tolist()
    unknown = zip(gold_rows(crowd).skipped, sizes, strict=True)
    if any(row and row != [(0, n)] for row, n in unknown):
        yield "gold that is known for a part of an item only"
    if (crowd.gold < 0).all():
        yield "a gold column without a tag"


def _lost_answers(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    answers = crowd.answers
    if len(np.unique(answers.worker)) < crowd.n_workers:
        yield "workers without answers"
    if answers.attempt.any() and not ("attempts" in holds and _are_counted(crowd)):
        yield "the numbers of repeated answers" if "attempts" in holds else "repeated answers"
    for name in ("started", "submitted", "cost"):
        column = getattr(answers, name)
        if column is None:
            continue
        if name not in holds:
            yield {"cost": "costs of answers"}.get(name, f"when answers were {name}")
        elif (column < 0).all():
            yield f"a column {name!r} without a value"
        elif (column > MAX_MOMENT).any():
            yield "times beyond the year 9999"
    if "started" in holds and answers.started is not None:
        ends = answers.submitted
        if ends is None or ((answers.started >= 0) & (ends < 0)).any():
            yield "when answers were started of which it is not known when they were submitted"


def _lost_texts(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    shown = list(item_texts(crowd))
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    if any(text is not None and not one.is_own for text, one in zip(texts, shown, strict=True)):
        yield "texts in which the tokens are not found"
    if not all(one.is_sound for one in shown):
        yield "tokens that begin or end with white space"
    if "tokens" not in holds:
        return
    if crowd.token_start is not None:
        if not all(one.is_own for one in shown):
            yield "places of tokens in texts that are not known"
    elif any(t == " ".join(w) for t, w in zip(texts, crowd.tokens_list, strict=True)):
        yield "texts that are only the tokens with blanks between"
    if crowd.texts is not None and crowd.texts.null_count == crowd.n_items:
        yield "a column of texts without a value"


def _are_counted(crowd: Crowd) -> bool:
    """Whether the attempts of every worker and item run from 0 without a gap."""
    answers = crowd.answers
    order = np.lexsort((answers.attempt, answers.worker, answers.item))
    item, worker = answers.item[order], answers.worker[order]
    same = (item[1:] == item[:-1]) & (worker[1:] == worker[:-1])
    attempt = answers.attempt[order].astype(np.int64)
    expected = np.zeros_like(attempt)
    expected[1:] = np.where(same, attempt[:-1] + 1, 0)
    return bool((attempt == expected).all())
