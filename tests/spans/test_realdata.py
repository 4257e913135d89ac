"""CoNLL-2003 as distributed: sentences, entities, and IOB turned into BIO token for token."""

from __future__ import annotations

import gzip
from functools import cache

import numpy as np
import pytest
import seqeval.metrics

from goldspan.spans import Codec, convert, find_errors, find_spans, parse, score
from goldspan.spans.corpus import write_codes

pytestmark = pytest.mark.realdata

SIZES = {"train": (14_041, 23_499), "testa": (3_250, 5_942), "testb": (3_453, 5_648)}
every_part = pytest.mark.parametrize("part", SIZES)


@cache
def _sentences(path):
    """Read a part as sentences, each a dictionary of columns; `-DOCSTART-` blocks are left out."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    head, rows = lines[0].split("\t"), lines[1:]
    sentences, current = [], []
    for line in [*rows, ""]:
        if line:
            current.append(line.split("\t"))
        elif current:
            if current != [["-DOCSTART-"]]:
                columns = map(list, zip(*current, strict=True))
                sentences.append(dict(zip(head, columns, strict=True)))
            current = []
    return sentences


@pytest.fixture
def sentences(data, part):
    return _sentences(data / "conll2003" / f"{part}.tsv.gz")


def _column(sentences, name):
    return [sentence[name] for sentence in sentences]


@every_part
def test_there_are_as_many_sentences_as_published(sentences, part):
    assert len(sentences) == SIZES[part][0]


@every_part
def test_there_are_as_many_entities_as_published(sentences, part):
    assert sum(len(parse(tags, "IOB1")) for tags in _column(sentences, "ner")) == SIZES[part][1]


def _joined(sentences, name):
    """Join all sentences to one, with a token outside between them."""
    return [tag for tags in _column(sentences, name) for tag in (*tags, "O")]


@pytest.mark.parametrize("column", ["ner", "chunk"])
@every_part
def test_iob_becomes_the_given_bio_token_for_token(sentences, column):
    given = _joined(sentences, column)
    assert convert(given, "IOB", "BIO") == _joined(sentences, f"{column}_bio")


@pytest.mark.parametrize("column", ["ner", "chunk"])
@pytest.mark.parametrize("part", ["testa", "testb"])
def test_bio_becomes_the_distributed_iob_token_for_token(sentences, column):
    given = _joined(sentences, f"{column}_bio")
    assert convert(given, "BIO", "IOB") == _joined(sentences, column)


@pytest.mark.parametrize("column", ["ner", "chunk"])
@every_part
def test_the_array_path_converts_a_whole_corpus(sentences, column):
    given = _column(sentences, column)
    source = Codec.from_tags({tag for tags in given for tag in tags}, "IOB")
    target = Codec.from_types(source.types, "BIO")
    tagged = source.encode(given)
    codes = write_codes(find_spans(tagged, source), tagged.offsets, target)
    assert target.decode(tagged._replace(codes=codes)) == _column(sentences, f"{column}_bio")


@every_part
def test_iob_read_as_bio_has_a_fault_wherever_an_entity_opens_with_inside(sentences, part):
    codec = Codec.from_types(["LOC", "MISC", "ORG", "PER"], "BIO")
    given = _column(sentences, "ner")
    n_begun = sum(tag.startswith("B-") for tags in given for tag in tags)
    assert len(find_errors(codec.encode(given), codec)) == SIZES[part][1] - n_begun


def test_noisy_tags_score_as_in_seqeval(data):
    truth = _column(_sentences(data / "conll2003" / "testb.tsv.gz"), "ner_bio")
    rng = np.random.default_rng(0)
    every = sorted({tag for tags in truth for tag in tags})
    found = [[t if rng.random() > 0.1 else every[rng.integers(9)] for t in tags] for tags in truth]
    theirs = (
        seqeval.metrics.precision_score(truth, found),
        seqeval.metrics.recall_score(truth, found),
    )
    result = score(truth, found)
    assert (result.precision, result.recall) == pytest.approx(theirs)
    assert 0.3 < result.f1 < 0.9
