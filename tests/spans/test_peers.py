"""The same answers as iobes, seqeval and nervaluate, wherever they are defined.

`test_differences.py` holds the cases in which we differ on purpose.
"""

from __future__ import annotations

from itertools import product

import iobes
import numpy as np
import pytest
import seqeval.metrics
from nervaluate import Evaluator

from goldspan.spans import convert, parse, score, validate, write
from spans import oracle, peers

SPAN_ENCODINGS = oracle.ENCODINGS[:-1]
every_encoding = pytest.mark.parametrize("encoding", oracle.ENCODINGS)


# iobes


@every_encoding
def test_parse_gives_the_spans_of_iobes_on_malformed_sequences_too(encoding):
    for tags in oracle.sequences(encoding, 4):
        assert parse(tags, encoding) == peers.read_iobes(tags, encoding)[0], tags


@every_encoding
def test_a_sequence_has_errors_exactly_if_iobes_finds_some(encoding):
    for tags in oracle.sequences(encoding, 4):
        assert bool(validate(tags, encoding)) == bool(peers.read_iobes(tags, encoding)[1]), tags


@pytest.mark.parametrize(
    ("source", "target"), [(a, b) for a, b in product(SPAN_ENCODINGS, repeat=2) if a != b]
)
def test_convert_gives_the_tags_of_iobes_on_every_well_formed_sequence(source, target):
    theirs = getattr(iobes, f"{source.lower()}_to_{target.lower()}")
    for tags in oracle.well_formed(source, 5):
        assert convert(tags, source, target) == theirs(list(tags)), tags


@pytest.mark.parametrize("encoding", SPAN_ENCODINGS)
def test_write_gives_the_tags_of_iobes(encoding):
    theirs = getattr(iobes, f"write_{encoding.lower()}_tags")
    for spans in oracle.layouts(5):
        rows = [iobes.Span(kind, a, b, tuple(range(a, b))) for kind, a, b in spans]
        assert write(spans, 5, encoding) == theirs(rows, length=5), spans


# seqeval


@pytest.mark.parametrize("encoding", ["IOB", "BIO", "IOBES"])
def test_conlleval_reads_what_the_default_mode_of_seqeval_reads(encoding):
    for tags in oracle.sequences(encoding, 4):
        assert peers.read_seqeval(tags) == (parse(tags, encoding), False), tags


@pytest.mark.parametrize("encoding", ["BIO", "IOBES", "BILOU"])
def test_strict_reads_what_the_strict_mode_of_seqeval_reads(encoding):
    for tags in oracle.sequences(encoding, 3):
        assert peers.read_seqeval_strict(tags, encoding) == parse(tags, encoding, "strict"), tags


def _corpora(encoding, seed, *, legal):
    """Draw two sides of a corpus."""
    rng = np.random.default_rng(seed)
    every = (oracle.well_formed if legal else oracle.sequences)(encoding, 3)
    of_length = [[list(t) for t in every if len(t) == n] for n in range(4)]
    lengths = rng.integers(1, 4, size=12)
    return [
        [of_length[n][rng.integers(len(of_length[n]))] for n in lengths] for _ in ("truth", "found")
    ]


def _seqeval(truth, found, **options):
    """Return precision, recall and F1 of seqeval, micro and macro."""
    measures = [getattr(seqeval.metrics, f"{m}_score") for m in ("precision", "recall", "f1")]
    return tuple(
        measure(truth, found, average=average, zero_division=0, **options)
        for average in ("micro", "macro")
        for measure in measures
    )


@pytest.mark.parametrize("legal", [True, False], ids=["well-formed", "any"])
@pytest.mark.parametrize("encoding", ["IOB", "BIO", "IOBES"])
def test_exact_scores_equal_the_default_mode_of_seqeval(encoding, legal):
    for seed in range(30):
        truth, found = _corpora(encoding, seed, legal=legal)
        ours = score(truth, found, encoding=encoding)
        assert (*ours.micro[:3], *ours.macro) == pytest.approx(_seqeval(truth, found))


@pytest.mark.parametrize(
    ("encoding", "legal"), [("IOB", True), *product(["BIO", "IOBES", "BILOU"], [True, False])]
)
def test_exact_scores_equal_the_strict_mode_of_seqeval(encoding, legal):
    scheme = peers.SEQEVAL_SCHEMES[encoding]
    for seed in range(15):
        truth, found = _corpora(encoding, seed, legal=legal)
        ours = score(truth, found, encoding=encoding, policy="strict")
        theirs = _seqeval(truth, found, mode="strict", scheme=scheme)
        assert (*ours.micro[:3], *ours.macro) == pytest.approx(theirs)


@pytest.mark.parametrize("encoding", ["IOB", "BIO", "IOBES"])
def test_per_type_scores_equal_the_report_of_seqeval(encoding):
    for seed in range(10):
        truth, found = _corpora(encoding, seed, legal=False)
        ours = score(truth, found, encoding=encoding).types
        theirs = seqeval.metrics.classification_report(
            truth, found, output_dict=True, zero_division=0
        )
        for kind, rates in ours.items():
            row = theirs[kind]
            expected = (row["precision"], row["recall"], row["f1-score"], row["support"])
            assert (*rates[:3], rates.n_true) == pytest.approx(expected), kind


# conlleval.pl and nervaluate


@pytest.mark.parametrize("encoding", ["IOB", "BIO"])
def test_conlleval_is_the_reading_of_the_perl_script(encoding):
    for tags in oracle.sequences(encoding, 4):
        assert parse(tags, encoding) == peers.read_conlleval_pl(tags), tags


def _overlaps_are_one_to_one(gold, found):
    pairs = [(a, b) for a in gold for b in found if min(a[2], b[2]) > max(a[1], b[1])]
    return len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})


def test_semeval_counts_equal_those_of_nervaluate_where_pairs_are_beyond_doubt():
    counts = ("correct", "incorrect", "partial", "missed", "spurious")
    n_compared = 0
    for gold, found in product(oracle.layouts(3), repeat=2):
        if not _overlaps_are_one_to_one(gold, found):
            continue
        truth, guess = ([oracle.spell(side, 3, "BIO")] for side in (gold, found))
        theirs = Evaluator(truth, guess, tags=["X", "Y"], loader="list").evaluate()["overall"]
        ours = score(truth, guess).schemes
        for name in ("strict", "exact", "partial", "type"):
            other = theirs["ent_type" if name == "type" else name]
            for count in counts:
                assert getattr(ours[name], count) == getattr(other, count), (name, gold, found)
            assert ours[name].f1 == pytest.approx(other.f1)
        n_compared += 1
    assert n_compared > 500
