"""Study purity: crowds are what they say, scores are those of plain loops, and it resumes."""

from __future__ import annotations

import gzip
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
from goldspan.runners import Threads
from goldspan.simulation import simulate_crowd
from goldspan.spans import find_spans, parse
from studies import run_study
from studies.purity import runs
from studies.purity.crowds import (
    LOOKED_AT,
    SPAN_FILES,
    TEAMS,
    TIMES,
    Shelf,
    all_cases,
    fewer_answers,
    fewer_items,
    parts_of,
    stripped,
    with_copies,
)
from studies.purity.scoring import Scores, score_result
from studies.purity.simulated import (
    LABEL_WORKERS,
    draw_sentences,
    family_labels,
    family_spans,
    independent_labels,
    independent_spans,
    long_span_crowd,
    rare_label,
)
from studies.purity.tables import (
    Line,
    copy_rows,
    family_rows,
    score_table,
    source_aims,
    team_rows,
)
from studies.registry import PARTS

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


def test_halves_follow_the_document(tmp_path):
    (tmp_path / "ner_mturk").mkdir()
    (tmp_path / "ner_mturk" / "crowd.tsv").write_bytes(ROWS)
    (tmp_path / "ner_mturk" / "docs.tsv").write_text("doc\tsplit\nd1\tval\nd2\ttest\n")
    news = parts_of(Shelf(tmp_path)._read("ner_mturk/crowd.tsv"))
    assert {half: items.tolist() for half, items in news.items()} == {
        "all": [1, 1, 1], "val": [1, 0, 0], "test": [0, 1, 0],
    }  # fmt: skip


def test_gold_of_time_expressions_counts_characters_and_all_items_are_known(tmp_path):
    folder = tmp_path / "time_expressions"
    folder.mkdir()
    answers = {"a": [[5, 10, "TIME"], [2, 10, "TIME"]], "b": []}
    lines = [
        {"item": name, "text": text, "answers": [{"worker": w, "spans": s} for w, s in own.items()]}
        for name, text, own in (
            ("q1", "\U0001f642 a month 🙂 ago .", answers),
            ("q2", "now", {"a": []}),
        )
    ]
    (folder / "crowd.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    )
    (folder / "gold.csv").write_text(
        "item,span_text,start,end,label,type\nq1,a month,2,9,TIME,DURATION\n", encoding="utf-8"
    )
    read = Shelf(tmp_path)._read(TIMES)
    spans = find_spans(read.gold_tagged, read.tagset)
    bounds = zip(spans.item, spans.start, spans.end, strict=True)
    assert [read.tokens_list[i][start:end] for i, start, end in bounds] == [["a", "month"]]
    assert (read.gold >= 0).all()
    assert stripped(read).gold is None


def test_the_same_two_workers_answer_a_document(crowd):
    few = fewer_answers(crowd, 2, seed=1, per_document=True)
    assert np.bincount(few.latest.item).tolist() == [2] * crowd.n_items
    assert fewer_answers(crowd, 2, seed=2, per_document=True) != few
    every = crowd.select_workers(np.arange(3))
    for documents in (few, fewer_answers(every, 2, seed=0, per_document=True)):
        assert documents.n_items == crowd.n_items


def test_the_ids_of_single_labels_are_hidden(tiny):
    case = next(c for c in all_cases(tiny, repeats=1) if c.name == "dog")
    made = Shelf(tiny).crowd(case)
    assert made.item_ids.to_pylist()[:2] == ["q1", "q2"]
    assert made.tokens.to_pylist()[:2] == [["q1"], ["q2"]]


def test_every_crowd_knows_what_was_looked_at(tiny):
    cases = all_cases(tiny, repeats=2)
    assert {case.folder for case in cases} == LOOKED_AT.keys()
    assert {case.source for case in cases if case.part == "sources"} == SPAN_FILES.keys()
    assert len({(case.part, case.name, case.seed) for case in cases}) == len(cases)
    assert list(dict.fromkeys(case.part for case in cases)) == list(PARTS)
    runs_of = [(case.name, case.seed) for case in cases if not case.only_auto]
    assert len(set(runs_of)) == len(runs_of)


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
    confidences, hits, at = [], [], 0
    for n, (key, tags) in enumerate(zip(truth, result.tags, strict=True)):
        found, true = _spans(tags), _spans(truth[key])
        for span in sorted(found):
            confidence = float(result.span_confidence[at])
            at += 1
            if items[n]:
                confidences.append(confidence)
                hits.append(span in true)
        if items[n]:
            right, n_found = right + len(found & true), n_found + len(found)
            n_true += len(true)
    assert at == len(result.span_confidence)
    assert scores.precision == pytest.approx(100 * right / n_found)
    assert scores.recall == pytest.approx(100 * right / n_true)
    assert scores.score == pytest.approx(200 * right / (n_found + n_true))
    bins = np.minimum((np.array(confidences) * 10).astype(int), 9)
    gaps = [
        abs(np.sum(np.array(confidences)[bins == n] - np.array(hits)[bins == n])) for n in range(10)
    ]
    assert scores.ece == pytest.approx(sum(gaps) / len(hits), abs=1e-6)
    assert scores.items == items.sum()


def test_a_gold_label_that_no_worker_gave_is_missed():
    given = goldspan.read_crowd(ROWS)
    result = goldspan.aggregate(stripped(given), "mv-token")
    assert score_result(result, given, np.array([False, True, False])).score == 0
    assert score_result(result, given, np.ones(3, np.bool_)).recall == 50


def test_single_labels_are_scored_by_accuracy():
    made = family_labels(0.3)
    result = goldspan.aggregate(stripped(made), "mv-token")
    scores = score_result(result, made, np.arange(made.n_items) < 100)
    assert scores.score == pytest.approx(100 * np.mean((result.codes == made.gold)[:100]))
    assert np.isnan(scores.precision)


# --------------------------------------------------------------------------------------------------
# The study.


FEW = ("mv-token (ties outside)", "mv-token (ties inside)", "mv-token", "ds")


def test_the_study_runs_resumes_and_says_what_is_missing(tiny, tmp_path, monkeypatch):
    told, state = [], tmp_path / "purity.runs.jsonl"
    options = {"quick": True, "methods": FEW, "state": state, "threads": 1}
    first = run_study("purity", tiny, progress=lambda *done: told.append(done), **options)
    n_runs = told[-1][1]
    assert told == [(n, n_runs) for n in range(1, n_runs + 1)]
    assert len(state.read_text().splitlines()) == n_runs
    assert any("pico/crowd.tsv.gz" in note for note in first.notes)
    captions = [table.caption for table in first.tables]
    assert {"Span F1 by source and crowd", "Single labels: accuracy, %"} < set(captions)
    (seen,) = (table for table in first.tables if "looked at while" in table.caption)
    assert [row[0] for row in seen.rows] == list(LOOKED_AT)
    lines = state.read_text().splitlines()
    state.write_text("\n".join(lines[:-3]) + "\n")
    calls = []
    before = runs.run_method
    monkeypatch.setattr(runs, "run_method", lambda *given: calls.append(given) or before(*given))
    so_far = run_study("purity", tiny, so_far=True, **options)
    assert not calls
    assert so_far.notes[0].startswith("SO FAR: on ")
    assert {table.caption for table in so_far.tables} <= set(captions)
    again = run_study("purity", tiny, **options)
    assert len(calls) == 3
    assert [table.caption for table in again.tables] == captions
    assert json.dumps(again.to_dict())


def test_a_method_that_fails_is_named_and_the_others_go_on(tiny, monkeypatch):
    def fail(*_):
        raise InputError("nothing to vote on")

    monkeypatch.setattr(SegmentVote, "_aggregate", fail)
    found = run_study("purity", tiny, quick=True, methods=("mv-seg", "ds"), threads=1)
    trouble = [note for note in found.notes if note.startswith("No result")]
    assert any("mv-seg on crowd.tsv" in note for note in trouble)
    assert any("ds" in table.columns for table in found.tables)


def test_fixed_methods_run_once_and_auto_with_every_seed(tiny):
    first, second, *_ = (case for case in all_cases(tiny, repeats=2) if case.name == "pico")
    assert runs.methods_of(first, None, quick=False) == [*runs.SPANS, "auto"]
    assert runs.methods_of(second, None, quick=False) == ["auto"]
    assert runs.methods_of(second, ["ds"], quick=False) == []
    assert [runs.params_of(case, "auto") for case in (first, second)] == [
        {"random_state": 0}, {"random_state": 1}
    ]  # fmt: skip
    assert runs.params_of(first, "ds") == {}
    with pytest.raises(UnknownNameError, match="nobody"):
        runs.methods_of(first, ["nobody"], quick=True)


def test_every_method_of_the_study_is_known():
    names = {runs.PARAMS.get(name, (name, {}))[0] for name in (*runs.SPANS, *runs.LABELS)}
    assert names <= methods().keys()


def test_processes_side_by_side_give_the_same_runs(tiny):
    cases = [
        case
        for case in all_cases(tiny, repeats=1)
        if case.is_there(tiny) and (case.part in ("models", "speed") or case.name == "crowd.tsv")
    ]
    work = [(case, ["ds"]) for case in cases]
    alone, beside = (runs.carry_out(tiny, work, n) for n in (1, 2))
    assert len(beside) == 1 + len(TEAMS)
    assert beside.keys() == alone.keys()
    for key, run in beside.items():
        assert run.parts["all"].score == alone[key].parts["all"].score


def test_people_and_a_model_that_nobody_declared(tiny):
    cases = [case for case in all_cases(tiny, repeats=1) if case.part == "models"]
    shelf = Shelf(tiny)
    made = {case.name: shelf.crowd(case) for case in cases}
    assert [len(one.worker_ids) - 5 for one in made.values()] == [0, 1, 1, 2]
    people, one, two = (made[name] for name in (*list(TEAMS)[:2], list(TEAMS)[3]))
    assert np.bincount(people.latest.item).tolist() == [2] * people.n_items
    assert one.answers_of(0).keys() == people.answers_of(0).keys() | {"model1"}
    assert two.answers_of(0)["model1"] == two.answers_of(0)["model2"] == one.answers_of(0)["model1"]
    declared = [runs.params_of(case, "auto").get("models") for case in cases]
    assert declared == [None, None, ("model1",), None]


def test_parts_are_chosen_and_unknown_ones_refused(tiny):
    found = run_study(
        "purity", tiny, quick=True, parts=("labels",), methods=("ds", "auto"), threads=1
    )
    captions = [table.caption for table in found.tables]
    assert captions[:2] == ["What is aimed at", "Single labels: accuracy, %"]
    assert not any("Span" in caption for caption in captions)
    with pytest.raises(UnknownNameError, match="part"):
        run_study("purity", tiny, parts=("everything",))


def test_repeats_are_positive(tiny):
    with pytest.raises(InputError, match="repeats"):
        run_study("purity", tiny, repeats=0)


def _line(crowd, n_items=200, ece=0.1, cautions=(), **scores):
    """Make a line of scores by method; underscores stand for the hyphens and pluses of names."""
    named = {runs.OUTSIDE: scores.pop("outside"), runs.INSIDE: scores.pop("inside"), **scores}

    def run(score):
        return runs.Run({"all": Scores(n_items, score, 0, 0, ece)}, 1.0, 2.0, cautions)

    return Line(crowd, {name: [*map(run, np.atleast_1d(own))] for name, own in named.items()})


def test_sources_weigh_alike_and_regret_is_to_the_best_of_all_methods():
    lines = [
        _line("btc e per", outside=50, inside=60, ds=70, auto=[66, 70, 68, 68, 60]),
        _line("btc e loc", outside=40, inside=30, ds=45, auto=[50]),
        _line("pico", 147, outside=80, inside=70, ds=60, auto=[78], ece=0.3),
    ]
    table = score_table("scores", lines)
    rows = {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.rows}
    per = (66 + 70 + 68 + 68 + 60) / 5
    assert rows["btc e per"]["auto"] == pytest.approx(per)
    assert lines[0].spread == 4  # of the first four
    assert rows["mean"]["auto"] == pytest.approx(((per + 50) / 2 + 78) / 2)
    assert rows["mean"]["ds"] == pytest.approx((57.5 + 60) / 2)
    assert rows["mean regret"]["auto"] == pytest.approx(((70 - per + 0) / 2 + 2) / 2)
    assert rows["worst regret"]["ds"] == 20
    below = rows["below the better vote by more than 1"]
    assert (below["auto"], below["ds"], below[runs.OUTSIDE]) == (0, 0, 1)  # pico is too small
    aims = {what: value for what, _, value in source_aims(lines)}
    assert aims["mean regret"] == pytest.approx(((70 - per) / 2 + 2) / 2)
    best_fixed = max((55 + 60) / 2, (45 + 80) / 2, (45 + 70) / 2, (57.5 + 60) / 2)
    mean = rows["mean"]["auto"]
    assert aims["mean F1 above that of the best fixed method"] == pytest.approx(mean - best_fixed)
    assert aims["mean span ECE"] == pytest.approx(0.2)
    assert aims["crowds with a span ECE above 0.2 and seeds without a warning"] == 1
    warned = [*lines[:2], _line("pico", outside=1, inside=1, auto=2, ece=0.3, cautions=("so",))]
    assert source_aims(warned)[7][2] == 0


def test_copies_cost_and_teams_are_beside_people_alone():
    plain = {"outside": 1, "inside": 1}
    copies = [_line("pico", **plain, auto=60), _line("pico, a worker 2 times", **plain, auto=59.5)]
    assert copy_rows(copies)[1] == ("pico, a worker 2 times", 59.5, 0.5)
    names = list(TEAMS)
    teams = [_line(names[0], **plain, auto=[70, 72]), _line(names[1], **plain, auto=[69, 74])]
    assert team_rows(teams)[1] == (names[1], 2, 71.5, 69, 74, 0.5, -1)


def test_false_families_and_true_ones_are_counted():
    def line(name, *found):
        scores = {"all": Scores(1, 90, 0, 0, 0)}
        return Line(name, {"auto": [runs.Run(scores, 0, 0, families=one) for one in found]})

    one = dict.fromkeys(("family1", "family2", "family3"), "f")
    rows = family_rows(
        [
            line("labels, independent", {}, {"w1": "f", "w2": "f"}),
            line(
                "spans, 3 of 8 with rho 1", one, one | {"alone1": "g"}, {}, one | {"family2": "g"}
            ),
        ]
    )
    assert rows[0][:3] == ("labels, independent", 2, 50)
    assert np.isnan(rows[0][3])
    assert rows[1][:4] == ("spans, 3 of 8 with rho 1", 4, 25, 50)


def test_a_run_keeps_families_and_warnings_and_comes_back_from_the_journal(tmp_path):
    made = with_copies(family_labels(0.0), 3)
    found = runs.run_method(made, "auto", Threads(1), {"random_state": 0})
    assert {"copy1", "copy2"} < found.families.keys()
    names = {"crowd: auto": "digest"}
    runs.Journal(tmp_path / "runs.jsonl", names).add((0, "crowd: auto"), found)
    again = runs.Journal(tmp_path / "runs.jsonl", names).runs[0, "crowd: auto"]
    assert again.families == found.families
    assert again.parts["all"].score == found.parts["all"].score
    assert tuple(again.cautions) == found.cautions


@pytest.mark.parametrize("make", [independent_labels, independent_spans])
def test_independent_workers_know_different_labels_and_err_alone(make):
    made = make(seed=1)
    assert 6 <= made.n_workers <= 20
    assert make(seed=1) == made != make(seed=2)
    assert np.ptp(np.bincount(made.latest.item)) == 0


def test_spammers_never_give_the_rare_label():
    made = rare_label(seed=0)
    rare = int(np.bincount(made.gold).argmin())
    answers = made.latest.codes.reshape(made.n_items, 8)
    assert (answers == rare).any(axis=0).tolist() == [True] * 4 + [False] * 4
    assert 0.02 < np.mean(made.gold == rare) < 0.09


def test_attributes_of_a_cut_stay_with_their_items(crowd):
    half = pa.table({"half": pa.array(["val", "test"] * (crowd.n_items // 2))})
    marked = replace(crowd, attributes=half)
    few = fewer_items(marked, 20, seed=0)
    kept = dict(zip(crowd.item_ids.to_pylist(), half.column("half").to_pylist(), strict=True))
    expected = [kept[name] == "val" for name in few.item_ids.to_pylist()]
    assert parts_of(few)["val"].tolist() == expected
