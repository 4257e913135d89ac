"""The numbers that goldspan must show on the crowd of Rodrigues et al. 2013.

Those of the raw answers are in `crowd/test_folder.py`.
"""

from __future__ import annotations

import pytest

import goldspan
from goldspan.spans import find_spans

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def crowd(data):
    return goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")


def test_the_crowd_of_paper_000_has_its_size(crowd):
    assert (crowd.n_items, crowd.n_tokens, crowd.n_workers) == (5985, 79901, 47)
    assert len(crowd.answers) == 27990
    assert int((crowd.answers.codes >= 0).sum()) == 366370
    assert len(find_spans(crowd.gold_tagged, crowd.tagset)) == 9907


def test_its_workers_have_the_f1_of_the_data_page(crowd):
    found = goldspan.agreement(crowd)
    f1 = [value for value in found.workers.column("span_f1").to_pylist() if value is not None]
    assert (round(100 * min(f1), 2), round(100 * max(f1), 2)) == (17.58, 85.22)
    assert round(found.quartiles["workers_per_group"].mean, 3) == 4.935


def test_it_takes_two_bytes_per_token_and_at_most_24_per_answer(crowd):
    answers = crowd.answers
    assert answers.nbytes <= 2 * len(answers.codes) + 24 * len(answers)
