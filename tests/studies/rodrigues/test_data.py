"""The data of Rodrigues et al. are read with their document marks."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from studies.rodrigues.data import (
    DOCSTART,
    read_entities,
    read_phrases,
    some_documents,
    with_docstarts,
)
from tiny_data import sentences


def test_every_document_begins_with_its_mark(tiny):
    crowd = read_entities(tiny, "testa")
    assert crowd.n_items == 8 * 3
    starts = [tokens == [DOCSTART] for tokens in crowd.tokens_list]
    assert starts == [True, False, False] * 8
    groups = crowd.groups.to_pylist()
    assert all(len(set(groups[i : i + 3])) == 1 for i in range(0, 24, 3))


def test_the_names_stay_with_their_words(tiny):
    crowd = read_entities(tiny, "train")
    found = list(crowd.tagged_by_id().values())
    assert found[1:3] == [[ner for _, _, ner in sentence] for sentence in sentences(0, 2)]
    assert found[0] == ["O"]


def test_a_file_without_documents_stays_as_it_is():
    crowd = read_crowd(b"Ann B-PER\nsang O\n", format="conll")
    assert with_docstarts(crowd) is crowd


def test_phrases_are_in_or_out(tiny):
    crowd = read_phrases(tiny, "train")
    assert crowd.tagset.tags == ("O", "I-NP")
    wanted = ["I-NP" if c.endswith("-NP") else "O" for _, c, _ in sentences(0, 2)[0]]
    assert list(crowd.tagged_by_id().values())[1] == wanted


def test_some_documents_are_whole_and_from_everywhere(tiny):
    crowd = read_entities(tiny, "train")
    part = some_documents(crowd, 24)
    names = list(dict.fromkeys(part.groups.to_pylist()))
    assert part.n_items == 24
    assert names == list(dict.fromkeys(crowd.groups.to_pylist()))[::3]


@pytest.mark.parametrize("n_sentences", [None, 10_000])
def test_all_documents_are_all(tiny, n_sentences):
    crowd = read_entities(tiny, "train")
    assert some_documents(crowd, n_sentences) is crowd


def test_data_that_are_not_there_are_named(tmp_path):
    with pytest.raises(InputError, match=r"conll2003.train\.tsv\.gz is not there"):
        read_entities(tmp_path, "train")


@pytest.mark.realdata
def test_the_real_parts_have_the_sizes_of_the_paper(data):
    crowd = read_entities(data, "testa")
    assert crowd.n_items == 3466
    assert int(np.char.startswith(crowd.item_ids.to_pylist(), DOCSTART).sum()) == 216
