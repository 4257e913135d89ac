"""The doubtful places: which they are, their sentence, and who said what."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report.uncertain import (
    MAX_CHARACTERS,
    MAX_NAMES,
    MAX_PLACES,
    NOTABLE,
    WINDOW,
    Candidate,
    rejected_spans,
    uncertain_places,
)


def _said(place):
    return [(given.spans or given.note, given.workers) for given in place.answers]


def test_the_spans_with_the_lowest_confidence_come_in_order(consensus):
    places = uncertain_places(consensus)
    assert [place.confidence for place in places] == sorted(consensus.span_confidence)[:MAX_PLACES]


def test_equal_confidence_keeps_the_order_of_the_text(consensus):
    flat = replace(consensus, span_confidence=np.full_like(consensus.span_confidence, 0.5))
    first = consensus.spans.slice(0, MAX_PLACES)
    places = uncertain_places(flat)
    assert [place.item for place in places] == first.column("item").to_pylist()
    assert [place.label for place in places] == first.column("type").to_pylist()


def test_a_place_shows_its_words_and_every_answer(build):
    tokens = ["The", "Bank", "of", "Rome", "fell"]
    crowd = build(
        {
            "s": (
                tokens,
                {
                    "a": ["O", "B-ORG", "I-ORG", "I-ORG", "O"],
                    "b": ["O", "B-ORG", "I-ORG", "I-ORG", "O"],
                    "c": ["O", "B-ORG", "O", "B-LOC", "O"],
                    "d": ["O", "O", "O", "O", "O"],
                    "e": [None, None, None, None, "O"],
                },
            )
        },
        gold={"s": ["B-ORG", "I-ORG", "I-ORG", "I-ORG", "O"]},
    )
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token", ties="inside"))
    assert (place.before, place.words, place.after) == ("The ", "Bank of Rome", " fell")
    assert (place.item, place.label, place.n_answers) == ("s", "ORG", 5)
    assert _said(place) == [
        ((("ORG", "Bank of Rome"),), ("a", "b")),
        ((("ORG", "Bank"), ("LOC", "Rome")), ("c",)),
        ("no span here", ("d",)),
        ("skipped", ("e",)),
    ]
    assert [given.is_result for given in place.answers] == [True, False, False, False]
    assert not any(given.is_gold for given in place.answers)
    assert place.gold == (("ORG", "The Bank of Rome"),)
    assert not place.is_gold


def test_answers_with_the_same_words_at_other_places_are_kept_apart(build):
    crowd = build(
        {
            "s": (
                ["la", "la", "la"],
                {"a": ["B-X", "I-X", "O"], "b": ["O", "B-X", "I-X"], "c": ["B-X", "I-X", "O"]},
            )
        }
    )
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token"))
    assert [(g.n_workers, g.is_result) for g in place.answers] == [(2, True), (1, False)]


def test_what_all_agree_on_is_not_doubtful(build):
    answers = {"a": ["B-X", "O"], "b": ["B-X", "O"]}
    crowd = build({"s": (["x", "y"], answers)})
    assert uncertain_places(goldspan.aggregate(crowd, "mv-token")) == []


def test_a_result_without_spans_has_no_doubtful_span(build):
    crowd = build({"s": (["x", "y"], {"a": ["O", "O"], "b": ["O", "B-X"]})})
    assert uncertain_places(goldspan.aggregate(crowd, "mv-token")) == []


def test_a_long_item_is_cut_around_the_place(build):
    tokens = [f"t{n}" for n in range(200)]
    tags = ["O"] * 100 + ["B-X"] + ["O"] * 99
    crowd = build({"s": (tokens, {"a": tags, "b": ["O"] * 200})})
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token", ties="inside"))
    assert place.before.split() == ["…", *tokens[100 - WINDOW : 100]]
    assert place.words == "t100"
    assert place.after.split() == [*tokens[101 : 101 + WINDOW], "…"]


def test_long_words_and_many_names_are_cut(build):
    answers = {f"w{n:02}": ["B-X"] for n in range(40)} | {"other": ["O"]}
    crowd = build({"s": (["y" * 1000], answers)})
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token"))
    assert len(place.words) <= MAX_CHARACTERS
    assert len(place.answers[0].workers) == MAX_NAMES
    assert place.answers[0].n_workers == 40


def test_single_labels_give_the_items_with_their_votes(labels):
    result = goldspan.aggregate(labels, "mv-token")
    (place,) = uncertain_places(result)
    assert (place.item, place.label, place.words) == ("q2", "x", "")
    assert place.confidence == pytest.approx(2 / 3)
    assert _said(place) == [((("x", ""),), ("ann", "bob")), ((("y", ""),), ("cem",))]


def test_a_single_label_shows_the_text_of_its_item(labels):
    crowd = replace(labels, texts=pa.array(["one", "two words", None]))
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token"))
    assert place.words == "two words"


def test_a_place_shows_the_real_text():
    rows = [
        {"item": "a", "worker": worker, "text": "L'Oréal's boss", "label": [[0, end, "ORG"]]}
        for worker, end in (("ann", 7), ("bob", 9), ("cem", 9))
    ]
    crowd = goldspan.read_crowd("\n".join(map(json.dumps, rows)).encode())
    (place,) = uncertain_places(goldspan.aggregate(crowd, "mv-token", ties="inside"))
    assert (place.before, place.words, place.after) == ("", "L'Oréal's", " boss")
    assert [spans for spans, _ in _said(place)] == [(("ORG", "L'Oréal's"),), (("ORG", "L'Oréal"),)]


def test_labels_on_every_token_give_tokens_in_their_sentence():
    builder = CrowdBuilder(goldspan.crowd.ReadOptions(encoding="PLAIN"))
    item = builder.add_item("s", ["time", "flies"])
    for worker, tags in {"a": ["N", "V"], "b": ["N", "V"], "c": ["N", "N"]}.items():
        builder.add_answer(item, worker, tags)
    (place,) = uncertain_places(goldspan.aggregate(builder.build(), "mv-token"))
    assert (place.before, place.words, place.label) == ("time ", "flies", "V")


def test_a_place_says_whether_it_is_the_gold(crowd, consensus):
    spurious = {
        (crowd.item_ids[wrong.item].as_py(), wrong.type)
        for wrong in goldspan.score(crowd, consensus, wrong=True).wrong
        if wrong.side == "spurious"
    }
    places = uncertain_places(consensus)
    wrong = {(place.item, place.label) for place in places if not place.is_gold}
    assert 0 < len(wrong) < len(places)
    assert wrong <= spurious


def _masses(model):
    found = model.posterior.marginals()
    base = model.crowd.offsets[found.item]
    keys = zip(base + found.begin, base + found.stop, found.kind, strict=True)
    return dict(zip(((int(a), int(b), int(k)) for a, b, k in keys), found.mass, strict=True))


def _taken(model):
    spans = model.span_array
    return set(zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True))


def test_rejected_spans_are_those_outside_the_result_with_their_posterior(model):
    types = model.tagset.types
    expected = {
        key: mass
        for key, mass in _masses(model).items()
        if key not in _taken(model) and mass >= NOTABLE
    }
    found = {(c.start, c.end, types.index(c.type)): c.confidence for c in rejected_spans(model)}
    assert expected
    assert found == pytest.approx(expected)


def test_the_most_probably_wrong_come_first(model):
    places = uncertain_places(model)
    wrong = [p.confidence if p.is_rejected else 1 - p.confidence for p in places]
    assert wrong == sorted(wrong, reverse=True)
    assert len(places) == MAX_PLACES
    assert any(place.is_rejected for place in places)


def test_spans_that_only_touch_do_not_overlap():
    first, second = Candidate(0, 2, "PER", 0.5), Candidate(2, 3, "LOC", 0.5)
    assert not first.overlaps(second)
    assert not second.overlaps(first)
    assert first.overlaps(Candidate(1, 3, "LOC", 0.5))


def test_a_rejected_span_that_overlaps_a_place_is_its_rival(build):
    tokens = ["The", "Bank", "fell"]
    crowd = build(
        {
            "s": (tokens, {"a": ["B-ORG", "I-ORG", "O"], "b": ["O", "B-ORG", "O"]}),
            "t": (tokens, {"a": ["O", "B-ORG", "O"], "b": ["O", "B-ORG", "O"]}),
            "u": (tokens, {"a": ["O", "O", "O"], "b": ["O", "O", "O"]}),
        }
    )
    result = goldspan.aggregate(crowd, "bsc-seq")
    place = next(place for place in uncertain_places(result) if place.item == "s")
    alternatives = result.posterior.alternatives(0)
    assert not place.is_rejected
    ((type_, words, mass), *_) = place.rivals
    second = alternatives[1]
    assert (type_, words) == (second.type, " ".join(tokens[second.start : second.end]))
    assert mass == pytest.approx(second.confidence)


def test_a_rejected_span_on_its_own_is_a_place(model):
    place = next(place for place in uncertain_places(model) if place.is_rejected)
    item = model.crowd.item_ids.to_pylist().index(place.item)
    spans = {(s.type, s.confidence) for s in model.posterior.alternatives(item)}
    assert any(t == place.label and c == pytest.approx(place.confidence) for t, c in spans)
    assert [given.note for given in place.answers if given.is_result] == ["no span here"]


def test_votes_reject_nothing(consensus):
    assert rejected_spans(consensus) == []
    assert not any(place.is_rejected or place.rivals for place in uncertain_places(consensus))


def test_single_labels_of_a_model_have_no_rejected_spans(labels):
    assert rejected_spans(goldspan.aggregate(labels, "ds")) == []
