"""Votes against enumeration on tiny crowds, and their properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.aggregation.votes import vote_counts
from goldspan.chains.decoding import best_paths_of_votes
from goldspan.crowd import CrowdBuilder, ReadOptions
from goldspan.errors import InputError
from goldspan.spans import Codec, parse, validate

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def crowd_of(items, encoding="BIO"):
    """Make a crowd from one list of answers per item (tags or None)."""
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    for n, answers in enumerate(items):
        item = builder.add_item(f"s{n}", [f"t{i}" for i in range(len(answers[0]))])
        for worker, tags in enumerate(answers):
            builder.add_answer(item, f"w{worker}", tags)
    return builder.build()


@st.composite
def answers(draw, tags=TAGS, missing=True):
    length = draw(st.integers(1, 4))
    choice = st.sampled_from([*tags, None] if missing else tags)
    one = st.lists(choice, min_size=length, max_size=length)
    return draw(st.lists(one, min_size=1, max_size=5))


def legal_sequences(tags, length, encoding="BIO"):
    return [s for s in itertools.product(tags, repeat=length) if not validate(list(s), encoding)]


def votes_for(sequence, answers):
    return sum(tag == given[i] for given in answers for i, tag in enumerate(sequence))


@given(answers())
def test_the_legal_token_vote_has_as_many_votes_as_the_best_legal_sequence(given):
    crowd = crowd_of([given])
    if not len(crowd.latest):
        return
    tags = list(crowd.tagset.tags)
    (found,) = goldspan.aggregate(crowd, "mv-token").tags
    best = max(votes_for(s, given) for s in legal_sequences(tags, len(given[0])))
    assert not validate(found, "BIO")
    assert votes_for(found, given) == best


@given(answers(), st.sampled_from(["outside", "inside", "first"]))
def test_the_raw_token_vote_takes_the_label_with_most_votes_and_the_tie_rule(given, ties):
    crowd = crowd_of([given])
    (found,) = goldspan.aggregate(crowd, "mv-token", ties=ties, legal=False).tags
    tags = list(crowd.tagset.tags)
    for i, tag in enumerate(found):
        counts = {t: sum(row[i] == t for row in given) for t in tags}
        most = max(counts.values())
        if most == 0:
            assert tag == "O"
            continue
        tied = [t for t in tags if counts[t] == most]
        inside = [t for t in tied if t != "O"]
        wanted = inside[0] if ties == "inside" and inside else tied[0]
        assert tag == wanted


@given(answers(missing=False), st.sampled_from(["outside", "inside", "first", "random"]))
def test_the_raw_sequence_vote_is_an_answer_with_most_votes(given, ties):
    crowd = crowd_of([given])
    (found,) = goldspan.aggregate(crowd, "mv-seq", ties=ties, legal=False).tags
    counts = [given.count(row) for row in given]
    assert given.count(found) == max(counts)
    tied = [row for row, count in zip(given, counts, strict=True) if count == max(counts)]
    if ties == "outside":
        assert found.count("O") == max(row.count("O") for row in tied)
    if ties == "inside":
        assert found.count("O") == min(row.count("O") for row in tied)


@given(answers(missing=False))
def test_the_legal_sequence_vote_shares_most_tags_with_the_winner(given):
    crowd = crowd_of([given])
    (raw,) = goldspan.aggregate(crowd, "mv-seq", legal=False).tags
    (found,) = goldspan.aggregate(crowd, "mv-seq").tags
    shared = sum(a == b for a, b in zip(raw, found, strict=True))
    best = max(
        sum(a == b for a, b in zip(raw, s, strict=True))
        for s in legal_sequences(list(crowd.tagset.tags), len(raw))
    )
    assert not validate(found, "BIO")
    assert shared == best


def test_the_segment_vote_decides_on_the_segment_before_the_type():
    # Two say X, two say Y, one says nothing: as tokens O, B-X and B-Y compete, and B-X ties with
    # B-Y; as segments four of five vote for one.
    given = [["B-X", "I-X"], ["B-X", "I-X"], ["B-Y", "I-Y"], ["B-Y", "O"], ["O", "O"]]
    crowd = crowd_of([given])
    assert goldspan.aggregate(crowd, "mv-seg").tags == [["B-X", "I-X"]]


@given(answers(missing=False), st.sampled_from(["outside", "inside", "first"]))
def test_the_segment_vote_takes_the_type_that_most_labels_of_the_segment_have(given, ties):
    crowd = crowd_of([given])
    (found,) = goldspan.aggregate(crowd, "mv-seg", ties=ties).tags
    assert not validate(found, "BIO")
    for span in parse(found):
        inside = [row[i][2:] for row in given for i in span.tokens if row[i] != "O"]
        assert inside.count(span.type) == max(inside.count(kind) for kind in inside)


@given(answers(tags=["O", "B-X", "I-X", "B-Y", "I-Y"]), st.sampled_from(["outside", "inside"]))
def test_a_segment_vote_on_inside_first_is_the_one_of_the_paper_by_hand(given, ties):
    """Rodrigues et al. 2013, section 4: in a segment or not; then the label of each segment."""
    length = len(given[0])
    inside = []
    for token in range(length):
        labels = [one[token] for one in given if one[token] is not None]
        n_in = sum(label != "O" for label in labels)
        n_out = len(labels) - n_in
        inside.append(n_in > n_out or (ties == "inside" and n_in == n_out > 0))
    wanted, token = ["O"] * length, 0
    while token < length:
        end = token
        while end < length and inside[end]:
            end += 1
        if end > token:
            labels = [
                one[t] for one in given for t in range(token, end) if one[t] not in {None, "O"}
            ]
            votes = {kind: sum(label[2:] == kind for label in labels) for kind in "XY"}
            kind = max(votes, key=votes.get)  # among equals the first
            wanted[token:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - token - 1)]
        token = max(end, token + 1)
    crowd = crowd_of([given])
    if not len(crowd.latest):
        return
    for legal in (True, False):
        found = goldspan.aggregate(crowd, "mv-seg", segments="inside", ties=ties, legal=legal)
        assert found.tags == [wanted]


@pytest.mark.parametrize(("encoding", "wanted"), [("BIO", "BII"), ("IOBES", "BIE")])
def test_ours_votes_on_bounds_and_the_papers_joins_segments_that_touch(encoding, wanted):
    last = "I-X" if encoding == "BIO" else "E-X"
    alone = "B-Y" if encoding == "BIO" else "S-Y"
    crowd = crowd_of([[["B-X", last, alone]] * 3], encoding)
    assert goldspan.aggregate(crowd, "mv-seg").tags == [["B-X", last, alone]]
    (joined,) = goldspan.aggregate(crowd, "mv-seg", segments="inside").tags
    assert joined == [f"{role}-X" for role in wanted]


def test_the_segment_vote_refuses_labels_without_prefixes():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n")
    with pytest.raises(InputError, match="needs spans"):
        goldspan.aggregate(crowd, "mv-seg")


def test_a_seed_gives_the_same_labels_and_another_seed_others():
    crowd = crowd_of([[["B-X"], ["B-Y"]]] * 40)
    runs = [
        goldspan.aggregate(crowd, "mv-token", ties="random", random_state=s).tags for s in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_random_ties_choose_every_tied_label_about_equally_often():
    crowd = crowd_of([[["B-X"], ["B-Y"]]] * 600)
    tags = goldspan.aggregate(crowd, "mv-token", ties="random").tags
    share = sum(row == ["B-X"] for row in tags) / 600
    assert 0.42 < share < 0.58


def test_confidence_is_a_share_of_votes():
    crowd = crowd_of([[["B-X", "I-X"], ["B-X", "I-X"], ["B-X", "O"], ["O", None]]])
    result = goldspan.aggregate(crowd, "mv-token")
    assert result.tags == [["B-X", "I-X"]]
    assert result.token_confidence.tolist() == pytest.approx([3 / 4, 2 / 3])
    assert result.spans.column("confidence").to_pylist() == pytest.approx([2 / 4])
    assert result.confidence.tolist() == pytest.approx([2 / 4])
    rows = {row["worker"]: row for row in result.workers.to_pylist()}
    assert rows["w2"]["token_agreement"] == pytest.approx(1 / 2)
    assert rows["w3"]["labels"] == 1


def test_what_nobody_answered_stays_open():
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    first = builder.add_item("a", ["x", "y"])
    builder.add_item("b", ["z"])
    builder.add_answer(first, "w", ["B-X", None])
    result = goldspan.aggregate(builder.build(), "mv-token")
    assert result.tags == [["B-X", "O"], [None]]
    assert result.token_confidence.tolist() == [1.0, 0.0, 0.0]
    assert any("without answers" in note for note in result.notes)


def test_the_last_attempt_counts():
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    item = builder.add_item("a", ["x"])
    builder.add_answer(item, "w", ["B-X"])
    builder.add_answer(item, "w", ["B-Y"])
    assert goldspan.aggregate(builder.build(), "mv-token").tags == [["B-Y"]]


def test_vote_counts_count_labels_and_not_gaps():
    crowd = crowd_of([[["B-X", None], ["B-X", "O"], ["O", "O"]]])
    counts = vote_counts(crowd)
    index = crowd.tagset.index
    assert counts[0, index["B-X"]] == 2
    assert counts[1].sum() == 2


@given(st.data())
def test_the_best_legal_sequence_is_that_of_enumeration(data):
    encoding = data.draw(st.sampled_from(["BIO", "IOB", "IOBES", "BMEWO"]))
    codec = Codec.from_types(["X", "Y"], encoding)
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = rng.integers(0, 6, size=(int(offsets[-1]), len(codec.tags)))
    found = best_paths_of_votes(scores, offsets, codec)
    for a, b in itertools.pairwise(offsets.tolist()):
        legal = legal_sequences(codec.tags, b - a, encoding) if b > a else [()]
        total = lambda s, a=a: sum(scores[a + i, codec.index[tag]] for i, tag in enumerate(s))  # noqa: E731
        mine = [codec.tags[code] for code in found[a:b]]
        assert not validate(mine, encoding)
        assert total(mine) == max(total(s) for s in legal)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("ties", "wanted"), [("outside", (79.13, 48.00, 59.75)), ("inside", (77.33, 57.44, 65.92))]
)
def test_the_raw_token_vote_on_the_crowd_of_paper_000(data, ties, wanted):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    found = goldspan.score(crowd, goldspan.aggregate(crowd, "mv-token", ties=ties, legal=False))
    got = tuple(round(100 * value, 2) for value in (found.precision, found.recall, found.f1))
    assert got == wanted


PLURALITY = {
    "bluebirds": 0.7593,
    "ducks": 0.6875,
    "dog": 0.8222,
    "face_sentiment": 0.6367,
    "product": 0.8966,
    "snow_rte": 0.8969,
    "snow_temp": 0.9361,
    "snow_wsd": 0.9944,
    "web": 0.7307,
    "sentiment_polarity": 0.8859,
    "weather_tweets_amt": 0.8533,
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", PLURALITY)
def test_the_expected_plurality_accuracy_is_that_of_the_data_page(data, name):
    folder = data / "classification" / name
    labels = next(folder.glob("labels.csv*"))
    crowd = goldspan.read_crowd(labels, gold=folder / "truth.csv")
    counts = vote_counts(crowd)
    known = crowd.gold >= 0
    most = counts.max(axis=1)
    right = counts[np.arange(len(counts)), np.maximum(crowd.gold, 0)] == most
    chance = right / (counts == most[:, None]).sum(axis=1)
    assert round(float(chance[known].mean()), 4) == PLURALITY[name]
    low = np.mean((right & ((counts == most[:, None]).sum(axis=1) == 1))[known])
    accuracy = goldspan.score(crowd, goldspan.aggregate(crowd, "mv-token", ties="random")).accuracy
    assert low <= accuracy <= np.mean(right[known])
