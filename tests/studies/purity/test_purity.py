"""Study purity: crowds are what they say, scores are those of plain loops, and it resumes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.aggregation import methods
from goldspan.aggregation.plausibility import check_plausibility
from goldspan.aggregation.votes import SegmentVote
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import simulate_crowd
from goldspan.spans import Codec, find_spans, parse
from studies import run_study
from studies.purity import runs
from studies.purity.crowds import (
    LOOKED_AT,
    SPAN_FILES,
    Shelf,
    all_cases,
    fewer_answers,
    fewer_items,
    parts_of,
    stripped,
    with_copies,
)
from studies.purity.scoring import relaxed_f1, score_result
from studies.purity.simulated import (
    LABEL_WORKERS,
    draw_sentences,
    family_labels,
    family_spans,
    long_span_crowd,
)

ROWS = b"""doc\tsent\ttoken\tgold\tann\tbob\tcy
d1\t1\ta\tB-PER\tB-PER\tB-PER\tB-PER
d1\t1\tb\tI-PER\tI-PER\tO\tI-PER
d1\t1\tc\tO\tO\tO\tO

d2\t1\td\tB-MISC\tB-LOC\tB-LOC\t?
d2\t1\te\tO\tO\tO\t?

d3\t1\tf\tO\t?\tO\tO
"""


@pytest.fixture(scope="module")
def crowd():
    return simulate_crowd(
        draw_sentences(60, seed=3), ["misses(0.3) + wrong_type(0.2) x6"], per_item=4, seed=3
    )


# --------------------------------------------------------------------------------------------------
# Crowds.


def test_a_method_sees_neither_the_gold_nor_a_label_that_only_the_gold_has():
    given = goldspan.read_crowd(ROWS)
    seen = stripped(given)
    assert seen.gold is None
    assert seen.attributes is None
    assert given.tagset.types == ("LOC", "MISC", "PER")
    assert seen.tagset.types == ("LOC", "PER")
    for item in range(given.n_items):
        assert seen.answers_of(item) == given.answers_of(item)


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_k_answers_of_every_item_are_kept(crowd, k):
    few = fewer_answers(crowd, k, seed=1)
    assert np.bincount(few.latest.item).tolist() == [min(k, 4)] * crowd.n_items
    for item in range(crowd.n_items):
        assert few.answers_of(item).items() <= crowd.answers_of(item).items()
    assert fewer_answers(crowd, k, seed=1) == few
    assert k == 9 or fewer_answers(crowd, k, seed=2) != few


def test_a_small_crowd_is_made_of_whole_documents_and_their_workers(crowd):
    few = fewer_items(crowd, 25, seed=0)
    assert few.n_items == 25
    documents = few.groups.to_pylist()
    assert sorted(documents.count(name) for name in set(documents)) == [5, 10, 10]
    assert set(few.latest.worker.tolist()) == set(range(few.n_workers))
    assert fewer_items(crowd, 25, seed=1) != few
    assert fewer_items(crowd, 600, seed=1).n_items == crowd.n_items


def test_copies_repeat_the_worker_with_most_answers(crowd):
    few = crowd.select_workers(np.arange(1, 6))
    three = with_copies(few, 3)
    most = int(np.bincount(few.latest.worker).argmax())
    name = few.worker_ids[most].as_py()
    assert three.worker_ids.to_pylist()[-2:] == ["copy1", "copy2"]
    for item in range(few.n_items):
        answers = three.answers_of(item)
        assert {key: answers[key] for key in few.answers_of(item)} == few.answers_of(item)
        for copy in ("copy1", "copy2"):
            assert answers.get(copy) == answers.get(name)


def test_blank_and_retyped_copies_differ_as_much_as_is_said(crowd):
    def codes_of(made, name):
        own = made.latest.take(made.by_worker[made.worker_index(name)])
        return own.codes, find_spans(goldspan.spans.Tagged(own.codes, own.offset), made.tagset)

    most = crowd.worker_ids[int(np.bincount(crowd.latest.worker).argmax())].as_py()
    blank = with_copies(crowd, 2, blank=0.3)
    (mine, _), (copy, _) = codes_of(blank, most), codes_of(blank, "copy1")
    outside = crowd.tagset.outside
    assert (copy[mine == outside] == outside).all()
    inside = mine != outside
    assert 0.15 < (copy[inside] == outside).mean() < 0.45
    retyped = with_copies(crowd, 2, wrong_type=0.3)
    (_, mine), (_, copy) = codes_of(retyped, most), codes_of(retyped, "copy1")
    assert mine.start.tolist() == copy.start.tolist()
    assert mine.end.tolist() == copy.end.tolist()
    assert 0.15 < (mine.type != copy.type).mean() < 0.45


def test_members_of_a_family_share_mistakes_and_the_others_do_not():
    shared = {}
    for rho in (0.3, 1.0):
        made = family_labels(rho)
        assert made.n_workers == 10
        wrong = made.latest.codes.reshape(made.n_items, 10) != made.gold[:, None]
        table = np.corrcoef(wrong.T)
        shared[rho] = table[5:, 5:][np.triu_indices(5, 1)].mean()
        assert abs(table[:5, 5:].mean()) < 0.05
    assert shared[1.0] == pytest.approx(1)
    assert shared[0.3] == pytest.approx(0.3, abs=0.07)
    assert family_labels(1.0, size=1).n_workers == 6
    assert family_spans(0.6, n_items=20).n_workers == 10
    assert len(LABEL_WORKERS) == 2


def test_long_spans_are_marked_with_rough_ends():
    made = long_span_crowd(n_items=20)
    assert np.bincount(made.latest.item).tolist() == [6] * 20
    rates = check_plausibility(made, made.gold)
    assert rates.longest_span <= 25 < rates.longest_answer
    assert rates.n_overruled < 0.02 * rates.n_unanimous


def test_halves_follow_the_document_and_the_place_in_the_file(tmp_path):
    for file in ("ner_mturk/crowd.tsv", "btc/a_per.tsv"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_bytes(ROWS)
    (tmp_path / "ner_mturk" / "docs.tsv").write_text("doc\tsplit\nd1\tval\nd2\ttest\n")
    shelf = Shelf(tmp_path)
    named = {name: parts_of(shelf._read(name)) for name in ("ner_mturk/crowd.tsv", "btc/a_per.tsv")}
    news = {half: items.tolist() for half, items in named["ner_mturk/crowd.tsv"].items()}
    assert news == {"all": [1, 1, 1], "val": [1, 0, 0], "test": [0, 1, 0]}
    tweets = {half: items.tolist() for half, items in named["btc/a_per.tsv"].items()}
    assert tweets == {"all": [1, 1, 1], "even": [1, 0, 1], "odd": [0, 1, 0]}


def test_the_ids_of_single_labels_are_hidden(tiny):
    case = next(c for c in all_cases(tiny, repeats=1) if c.name == "dog")
    made = Shelf(tiny).crowd(case)
    assert made.item_ids.to_pylist()[:2] == ["q1", "q2"]
    assert made.tokens.to_pylist()[:2] == [["q1"], ["q2"]]


def test_every_crowd_knows_what_was_looked_at(tiny):
    cases = all_cases(tiny, repeats=2)
    assert {case.folder for case in cases} == LOOKED_AT.keys()
    assert {case.source for case in cases} >= SPAN_FILES.keys()
    assert len({(case.name, case.seed) for case in cases}) == len(cases)
    sources = [case.source for case in cases]
    together = [a for a, b in zip(sources, [None, *sources], strict=False) if a != b]
    assert len(together) == len(set(together))


# --------------------------------------------------------------------------------------------------
# Scores.


def _spans(tags):
    return {(s.start, s.end, s.type) for s in parse([tag or "O" for tag in tags])}


@pytest.mark.parametrize("method", ["mv-token", "ds"])
def test_scores_are_those_of_plain_loops(crowd, method):
    result = goldspan.aggregate(stripped(crowd), method)
    items = np.arange(crowd.n_items) % 3 == 0
    scores = score_result(result, crowd, items)
    truth = crowd.tagged_by_id()
    right = n_found = n_true = 0
    squares, logs, at = [], [], 0
    for n, (key, tags) in enumerate(zip(truth, result.tags, strict=True)):
        found, true = _spans(tags), _spans(truth[key])
        for span in sorted(found):
            confidence = float(result.span_confidence[at])
            at += 1
            if items[n]:
                squares.append((confidence - (span in true)) ** 2)
        if items[n]:
            right, n_found = right + len(found & true), n_found + len(found)
            n_true += len(true)
            for place, tag in enumerate(truth[key]):
                row = result.token_probs[crowd.offsets[n] + place]
                logs.append(-np.log(max(1e-12, float(row[result.tagset.index[tag]]))))
    assert at == len(result.span_confidence)
    assert scores.precision == pytest.approx(100 * right / n_found)
    assert scores.recall == pytest.approx(100 * right / n_true)
    assert scores.score == pytest.approx(200 * right / (n_found + n_true))
    assert scores.brier == pytest.approx(np.mean(squares))
    assert scores.entropy == pytest.approx(np.mean(logs), rel=1e-5)


def test_a_gold_label_that_no_worker_gave_has_probability_0():
    given = goldspan.read_crowd(ROWS)
    result = goldspan.aggregate(stripped(given), "mv-token")
    scores = score_result(result, given, np.array([False, True, False]))
    assert scores.score == 0
    assert scores.entropy == pytest.approx(-np.log(1e-12) / 2)
    everywhere = score_result(result, given, np.ones(3, np.bool_))
    assert everywhere.recall == 50
    assert everywhere.longest == everywhere.longest_answer == 2


def test_relaxed_f1_counts_what_is_covered():
    codec = Codec.from_types(["P", "Q"], "BIO")
    gold = codec.encode([["B-P", "I-P", "I-P", "I-P", "O", "B-Q"]])
    found = codec.encode([["O", "O", "B-P", "I-P", "I-P", "B-P"]])
    both = [find_spans(tagged, codec) for tagged in (gold, found)]
    precision, recall = (2 / 3 + 0) / 2, (2 / 4 + 0) / 2
    expected = 2 * precision * recall / (precision + recall)
    assert relaxed_f1(*both, 6) == pytest.approx(expected)
    assert relaxed_f1(both[0], both[0], 6) == 1


def test_single_labels_are_scored_by_accuracy():
    made = family_labels(0.3)
    result = goldspan.aggregate(stripped(made), "mv-token")
    scores = score_result(result, made, np.arange(made.n_items) < 100)
    assert scores.score == pytest.approx(100 * np.mean((result.codes == made.gold)[:100]))
    confidence = result.token_confidence[:100]
    is_right = (result.codes == made.gold)[:100]
    assert scores.brier == pytest.approx(np.mean((confidence - is_right) ** 2))
    assert np.isnan(scores.precision)


# --------------------------------------------------------------------------------------------------
# The study.


FEW = ("mv-token (ties outside)", "mv-token (ties inside)", "mv-token", "ds")


def test_the_study_runs_resumes_and_says_what_is_missing(tiny, tmp_path, monkeypatch):
    told, state = [], tmp_path / "purity.runs.jsonl"
    options = {"quick": True, "methods": FEW, "state": state}
    first = run_study("purity", tiny, progress=lambda *done: told.append(done), **options)
    n_runs = told[-1][1]
    assert told == [(n, n_runs) for n in range(1, n_runs + 1)]
    assert len(state.read_text().splitlines()) == n_runs
    assert any("pico/crowd.tsv.gz" in note for note in first.notes)
    captions = [table.caption for table in first.tables]
    assert "Span crowds as they are, all items: means over 1 crowds" in captions
    assert "Single labels: means over 2 crowds" in captions
    (seen,) = (table for table in first.tables if "looked at while" in table.caption)
    assert [row[0] for row in seen.rows] == list(LOOKED_AT)
    rows = {
        row["method"]: row
        for table in first.to_dict()["tables"]
        if table["caption"] == "crowd.tsv"
        for row in table["rows"]
    }
    better = max(rows[vote]["score"] for vote in FEW[:2])
    assert rows["ds"]["over votes"] == pytest.approx(rows["ds"]["score"] - better)
    lines = state.read_text().splitlines()
    state.write_text("\n".join(lines[:-3]) + "\n")
    calls = []
    before = runs.run_method
    monkeypatch.setattr(runs, "run_method", lambda *given: calls.append(given) or before(*given))
    so_far = run_study("purity", tiny, so_far=True, **options)
    assert not calls
    assert so_far.notes[0].startswith("SO FAR: on ")
    shown = [table.caption for table in so_far.tables]
    assert [caption for caption in captions if caption in shown and "means" not in caption] != []
    assert len(shown) < len(captions)
    again = run_study("purity", tiny, **options)
    assert len(calls) == 3
    assert [table.caption for table in again.tables] == captions
    assert json.dumps(again.to_dict())


def test_a_method_that_fails_is_named_and_the_others_go_on(tiny, monkeypatch):
    def fail(*_):
        raise InputError("nothing to vote on")

    monkeypatch.setattr(SegmentVote, "_aggregate", fail)
    found = run_study("purity", tiny, quick=True, methods=("mv-seg", "ds"))
    trouble = [note for note in found.notes if note.startswith("No result")]
    assert any("mv-seg on crowd.tsv" in note for note in trouble)
    assert any("mean rank" in table.columns for table in found.tables)


def test_auto_runs_where_there_is_one_and_is_left_out_where_not(tiny):
    case = all_cases(tiny, repeats=1)[0]
    assert ("auto" in runs.methods_of(case, None, quick=True)) == ("auto" in methods())
    with pytest.raises(UnknownNameError, match="nobody"):
        runs.methods_of(case, ["nobody"], quick=True)
    if "auto" not in methods():
        with pytest.raises(UnknownNameError, match="auto"):
            runs.methods_of(case, ["auto"], quick=True)


def test_every_method_of_the_study_is_known():
    names = {runs.PARAMS.get(name, (name, {}))[0] for name in (*runs.SPANS, *runs.LABELS)}
    assert names - {"auto"} <= methods().keys()
    assert set(runs.SHORT_SPANS) | set(runs.QUICK_SPANS) <= set(runs.SPANS)


def test_repeats_are_positive(tiny):
    with pytest.raises(InputError, match="repeats"):
        run_study("purity", tiny, repeats=0)


def test_seeds_are_averaged_and_the_worst_is_shown(tiny):
    cases = [
        case for case in all_cases(tiny, repeats=2) if case.name == "crowd.tsv, 1 answer per item"
    ]
    assert [case.seed for case in cases] == [0, 1]
    from goldspan.runners import Threads
    from studies.purity.tables import crowd_tables

    work = [(case, FEW[:2]) for case in cases]
    found = runs.carry_out(tiny, work, Threads(1))
    (table,) = crowd_tables(work, found)
    assert table.caption == "crowd.tsv, 1 answer per item, mean of 2 seeds"
    row = dict(zip(table.columns, table.rows[0], strict=True))
    scores = [found[seed, runs.label_of(cases[0], FEW[0])].parts["all"].score for seed in (0, 1)]
    assert row["score"] == pytest.approx(np.mean(scores))
    assert row["worst seed"] is not None


def test_attributes_of_a_cut_stay_with_their_items(crowd):
    half = pa.table({"half": pa.array(["even", "odd"] * (crowd.n_items // 2))})
    marked = replace(crowd, attributes=half)
    few = fewer_items(marked, 20, seed=0)
    kept = dict(zip(crowd.item_ids.to_pylist(), half.column("half").to_pylist(), strict=True))
    expected = [kept[name] == "even" for name in few.item_ids.to_pylist()]
    assert parts_of(few)["even"].tolist() == expected
