"""What the picture shows: which unit is counted, and the words for those who do not see it."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report.drawing import Distribution, distributions


def _documents(skip=()):
    """Two documents of five sentences; ann answers both, bob the second; `skip` names gaps."""
    builder = CrowdBuilder()
    for n in range(10):
        item = builder.add_item(f"s{n}", ["Rome", "fell"], group=f"d{n // 5}")
        for worker in ("ann", "bob") if n >= 5 else ("ann",):
            if (worker, n) not in skip:
                builder.add_answer(item, worker, ["B-LOC", "O"])
    return builder.build()


def _shown(crowd):
    return distributions(crowd, goldspan.agreement(crowd))


def test_where_workers_answer_whole_documents_documents_are_counted():
    workers, documents, _ = _shown(_documents())
    assert (workers.title, sorted(workers.values)) == ("documents per worker", [1, 2])
    assert (documents.title, sorted(documents.values)) == ("workers per document", [1, 2])


def test_a_sentence_left_out_here_and_there_still_makes_a_whole_document():
    workers, _, _ = _shown(_documents(skip={("bob", 7)}))
    assert workers.title == "documents per worker"


def test_where_workers_answer_single_sentences_answers_are_counted():
    crowd = _documents(skip={("ann", n) for n in (1, 2, 3, 5, 6, 8)} | {("bob", 9), ("bob", 6)})
    workers, items, _ = _shown(crowd)
    assert (workers.title, sorted(workers.values)) == ("answers per worker", [3, 4])
    assert items.title == "answers per item"
    assert sorted(items.values) == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]


def test_documents_of_one_sentence_are_items():
    builder = CrowdBuilder()
    for n in range(3):
        item = builder.add_item(f"s{n}", ["Rome"], group=f"d{n}")
        builder.add_answer(item, "ann", ["B-LOC"])
    workers, items, _ = _shown(builder.build())
    assert (workers.title, items.title) == ("answers per worker", "answers per item")


def test_a_worker_and_an_item_without_answers_count_as_zero(labels):
    workers, items, _ = _shown(labels)
    assert workers.values.tolist() == [2, 2, 2, 0]
    assert items.values.tolist() == [3, 3, 0]


def test_gold_decides_what_the_workers_are_compared_with(crowd, labels):
    assert _shown(crowd)[2].title == "span F1 against gold"
    assert _shown(crowd.with_gold(None))[2].title == "span F1 against the others"
    assert _shown(labels)[2].title == "agreement with the others"
    gold = np.zeros(labels.n_tokens, np.int16)
    assert _shown(labels.with_gold(gold))[2].title == "accuracy against gold"


def test_the_description_says_the_five_numbers():
    shown = Distribution("span F1", "of workers", np.array([0.1, 0.2, 0.3, 0.4, 0.5]), is_rate=True)
    assert shown.describe() == (
        "span F1 of workers: from 10.0 to 50.0 per cent, "
        "the middle half between 20.0 and 40.0, median 30.0."
    )
    assert Distribution("x", "per y", np.zeros(0)).describe() == "x per y: nothing to show."


@pytest.mark.parametrize(
    ("value", "words"), [(3.0, "3"), (3.25, "3.2"), (1234.5, "1,234"), (float("nan"), "–")]
)
def test_counts_are_written_plainly(value, words):
    assert Distribution("x", "per y", np.zeros(1)).show(value) == words


@pytest.mark.realdata
def test_the_picture_of_the_papers_crowd_is_the_papers_figure_2(data):
    """Rodrigues et al., section 4.2: 47 workers, 42 articles each, 4.93 workers per article."""
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz", format="wide")
    workers, documents, quality = _shown(crowd)
    assert len(workers.values) == len(quality.values) == 47
    assert round(workers.quartiles.mean) == 42
    assert round(documents.quartiles.mean, 2) == 4.93
    assert round(quality.quartiles.minimum, 3) == 0.176
