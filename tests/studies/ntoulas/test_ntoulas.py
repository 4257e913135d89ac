"""The studies of Ntoulas et al.: parts, tables on tiny data, and the claim on the mails."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import sem, ttest_1samp
from sklearn.metrics import precision_recall_fscore_support

from goldspan.aggregation import aggregate
from goldspan.errors import InputError
from goldspan.selection import Features, Pool
from goldspan.simulation import draw_truth, simulate_crowd
from studies import run_study
from studies.ntoulas import spambase, text
from studies.ntoulas.learners import learn_and_label
from studies.ntoulas.rounds import WAYS, Way, errors_of, play, rounds_table
from studies.ntoulas.scores import Scores, mean_and_error
from studies.ntoulas.split import FOLDS, Split, deal, set_aside
from studies.ntoulas.trial import RANDOM, Rule, Training, run_trial
from studies.rodrigues.paired import holm

ONE = ("logistic",)
WORDS = (("fine", "warm", "bright"), ("dull", "cold", "grey"), ("a", "film", "plot", "the", "it"))


@pytest.fixture(scope="module")
def mails(tmp_path_factory) -> Path:
    """2,000 mails in the form of the real ones; spam has larger numbers."""
    folder = tmp_path_factory.mktemp("mails")
    rng = np.random.default_rng(0)
    spam = rng.random(2000) < 0.4
    cells = rng.gamma(1.0, np.where(spam, 300.0, 100.0)[:, None], (2000, 4)).round(2)
    lines = ["a,b,c,d,spam"]
    lines += [",".join(map(str, [*row, int(label)])) for row, label in zip(cells, spam)]  # noqa: B905
    (folder / "spambase").mkdir()
    (folder / spambase.FILE).write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    return folder


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    """300 sentences with five answers each, in the form of the real ones."""
    folder = tmp_path_factory.mktemp("films")
    crowd = simulate_crowd(draw_truth(300, 2, seed=1), ["flip(0.2) x5"], seed=1)
    answers, rng = crowd.latest, np.random.default_rng(2)
    rows = [f"q{i},w{k},{c}" for i, k, c in zip(answers.item, answers.worker, answers.codes)]  # noqa: B905
    tsv = ["split\ttask\tlabel\ttext"]
    for n, label in enumerate(crowd.gold.tolist()):
        mood = rng.choice(WORDS[0] if label == 1 else WORDS[1], 2)
        words = [*mood, *rng.choice(WORDS[2], rng.integers(1, 5)), f'x{n % 90}"']
        tsv += [f"train\tq{n}\t{label}\t{' '.join(words)}", f"test\tq{n}\t0\tanother sentence"]
    place = folder / text.FOLDER
    place.mkdir(parents=True)
    truth = [f"q{n},{label}" for n, label in enumerate(crowd.gold.tolist())]
    (place / "labels.csv").write_text("\n".join(["task,worker,label", *rows, ""]))
    (place / "truth.csv").write_text("\n".join(["task,label", *truth, ""]))
    (place / "texts.tsv.gz").write_bytes(gzip.compress("\n".join([*tsv, ""]).encode()))
    return folder


@pytest.fixture(scope="module")
def mail_study(mails):
    seen = []
    found = run_study(
        "ntoulas-spambase", mails, quick=True, methods=ONE, progress=lambda *done: seen.append(done)
    )
    assert seen == [(1, 2), (2, 2)]
    return found


@pytest.fixture(scope="module")
def text_study(films):
    return run_study("ntoulas-text", films, quick=True, methods=ONE, repeats=1)


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        truth, found = rng.random(200) < 0.4, rng.random(200) < share
        ours = Scores.of(truth, found)
        theirs = precision_recall_fscore_support(truth, found, average="binary")[:3]
        assert (ours.precision, ours.recall, ours.f) == pytest.approx([100 * x for x in theirs])
        assert ours.fpr == pytest.approx(100 * found[~truth].mean())


def test_the_standard_error_is_that_of_scipy_and_of_one_value_there_is_none():
    values = [3.0, 4.5, 1.0, 7.0]
    assert mean_and_error(values) == pytest.approx((3.875, sem(values)))
    assert mean_and_error([2.0]) == (2.0, None)


def test_every_repeat_sets_other_items_aside_and_the_same_repeat_the_same():
    pool, gold = set_aside(50, 20, seed=3)
    assert sorted([*pool, *gold]) == list(range(50))
    assert len(gold) == 20
    assert set_aside(50, 20, seed=3)[1].tolist() == gold.tolist()
    assert set_aside(50, 20, seed=4)[1].tolist() != gold.tolist()


def test_ten_folds_share_the_items_out():
    golds = [deal(53, fold)[1].tolist() for fold in range(FOLDS)]
    assert sorted(n for gold in golds for n in gold) == list(range(53))
    assert {len(gold) for gold in golds} == {5, 6}
    for fold, gold in enumerate(golds):
        pool, again = deal(53, fold)
        assert again.tolist() == gold
        assert sorted([*pool.tolist(), *gold]) == list(range(53))


def _line(n=60) -> Split:
    """Items on a line, and on both sides of its middle the one label and the other."""
    rows = np.arange(n, dtype=float)[:, None]
    labels = rows[:, 0] >= n / 2
    pool = Pool.of([[f"w{k}" for k in range(i, i + 4)] for i in range(n)])
    return Split(pool, rows, rows, labels, lambda items: labels[items], lambda *_: {})


def test_wrong_items_are_those_that_other_folds_label_otherwise():
    split, items = _line(), np.arange(0, 60, 3)
    labels = split.buy(items)
    found = errors_of(split, "tree", items, labels, seed=4)
    order = np.random.default_rng(4).permutation(20)
    for fold in range(5):
        rest = np.sort(np.concatenate([order[k::5] for k in range(5) if k != fold]))
        for n in order[fold::5].tolist():
            guess = learn_and_label(
                "tree", split.rows[items[rest]], labels[rest], split.rows[items[[n]]], 4
            )
            assert found[str(items[n])] == float(guess[0] != labels[n])
    assert set(found.values()) == {0.0, 1.0}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_buys_as_many_labels_as_it_is_scored_on(way):
    bought: list[int] = []
    plain = _line(400)
    split = replace(plain, buy=lambda items: bought.append(len(items)) or plain.buy(items))
    features = Features.fit(split.pool, templates=("lower",))
    found = play(split, way, "gaussian-nb", (70, 120), 1, features)
    assert bought == [50, 70, 100, 120]
    assert list(found) == [70, 120]


def test_a_way_is_compared_with_the_one_beside_it_repeat_by_repeat():
    made = {
        ("svm", name): [{9: Scores(0, 0, f, 0)} for f in values]
        for name, values in (("random", (10, 20)), ("coverage", (11, 24)))
    }
    rows = rounds_table(made, (9,), "").rows
    assert rows[0][3:] == (15.0, *[None] * 4)
    assert rows[1][2] == "random"
    p = ttest_1samp([1, 4], 0).pvalue
    assert rows[1][3:] == pytest.approx((17.5, 2.5, 1.5, p, p))
    assert {way.beside for way in WAYS} <= {way.name for way in WAYS} | {""}
    assert not Way("x", "random").errors


def test_what_is_told_of_errors_is_corrected_apart_from_the_rest():
    rng = np.random.default_rng(3)
    names = ("random", "coverage", "unsure", "coverage near errors", "like the errors")
    made = {
        ("svm", name): [{n: Scores(0, 0, rng.random(), 0) for n in (5, 9)} for _ in range(6)]
        for name in names
    }
    table = rounds_table(made, (5, 9), "").to_dict()["rows"]
    for told in (True, False):
        rows = [row for row in table if row["compared with"] and ("error" in row["way"]) == told]
        p, corrected = ([row[f"{c}, {n}"] for row in rows for n in (5, 9)] for c in ("p", "p Holm"))
        assert corrected == pytest.approx(holm(p))
        assert len(p) == 4


def test_coverage_of_mails_takes_the_most_new_tens_each_time():
    rows = np.random.default_rng(5).integers(0, 60, (40, 3)).astype(float)
    order = spambase.PAPER.order(Pool.of(rows), seed=0)
    tens = [{(n, int(cell / 10 + 0.5)) for n, cell in enumerate(row)} for row in rows]
    covered: set[tuple[int, int]] = set()
    everything = set().union(*tens)
    for item in order.tolist():
        gains = [len(pairs - covered) for pairs in tens]
        assert gains[item] == max(gains)
        covered |= tens[item]
        if covered == everything:
            break
    assert covered == everything


def test_coverage_of_texts_takes_the_most_new_words_each_time():
    texts = ["a b c d", "a b", "e f g", "e", "h"]
    order = text.PAPER.order(Pool.of(texts), seed=0)
    assert order[:3].tolist() == [0, 2, 4]


def _split(bought: list[list[int]]) -> Split:
    rows = np.arange(30, dtype=float)[:, None] % 10
    labels = rows[:, 0] > 5

    def buy(items):
        bought.append(items.tolist())
        return labels[items]

    return Split(Pool.of(rows), rows, rows, labels, buy, lambda items, _: {"labels": len(items)})


def test_a_trial_buys_the_labels_of_what_was_chosen_and_no_others():
    bought: list[list[int]] = []
    split = _split(bought)
    ten = Training(RANDOM, 10)
    trial = run_trial(split, [ten, ten], ["tree"], seed=1)
    assert bought == [RANDOM.order(split.pool, 1)[:10].tolist()]
    assert list(trial.scores) == [("tree", ten)]
    assert trial.facts == {ten: {"labels": 10}}


def test_a_rule_that_picks_fewer_has_no_such_training_set():
    # Ten different values: all is covered after ten picks.
    once = Rule("once", "coverage-paper", spambase.PAPER.features)
    trial = run_trial(_split([]), [Training(once, 10), Training(once, 1)], ["tree"], seed=0)
    assert [training.n for _, training in trial.scores] == [1]


def test_the_tables_of_the_mails_hold_every_classifier_and_training_set(mail_study):
    measures, differences, chosen, curves, folds, rounds = mail_study.tables
    names = [
        "all 1,100", "random 912", "random 850", "coverage 850",
        "coverage, duplicates kept 850", "weighted, tens 850", "weighted, quantiles 850",
    ]  # fmt: skip
    assert [row[1] for row in measures.rows] == names
    assert [row[0] for row in chosen.rows] == names
    assert len(differences.rows) == 4
    assert [row[1] for row in folds.rows] == ["all 1,800", *names[1:]]
    assert [row[1] for row in rounds.rows] == [way.name for way in WAYS]
    assert curves.columns == ("classifier", "rule", "100", "300", "850")
    rows = measures.to_dict()["rows"]
    best = next(row for row in rows if row["classifier"] == "logistic")
    assert best["F"] > 60
    assert best["recall = TPR"] > best["FPR"]


def test_the_tables_of_texts_say_what_the_crowd_gave(text_study):
    chosen = text_study.tables[2].to_dict()["rows"]
    assert [row["training set"] for row in chosen] == [
        "all 219", "random 78", "random 64", "coverage 64", "weighted 64",
    ]  # fmt: skip
    assert [row["answers"] for row in chosen] == [5 * row["labels"] for row in chosen]
    assert all(80 < row["right by ds, %"] <= 100 for row in chosen)
    assert text_study.tables[3].rows[0][-1] is None  # 400 labels: the pool has 219


def test_labels_of_texts_come_from_the_answers_to_these_alone(films):
    texts = text.read_texts(films / text.FOLDER)
    items = np.array([7, 3, 50, 120, 9], np.int64)
    split = texts.draw(0)
    kept, gold = set_aside(300, texts.n_gold, 0)
    alone = aggregate(texts.crowd.select_items(kept[items]), "ds").codes
    assert split.buy(items).tolist() == (alone == 1).tolist()
    assert split.gold.tolist() == (texts.crowd.gold[gold] == 1).tolist()


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        (b"not packed", "damaged"),
        (gzip.compress(b"a,spam\n1,x\n"), "damaged"),
        (gzip.compress(b""), "damaged"),
        (gzip.compress(b"a,ham\n1,0\n"), "last column must be 'spam'"),
        (gzip.compress(b"a,spam\n1,0\n"), "too few"),
    ],
    ids=["packing", "cell", "empty", "column", "rows"],
)
def test_a_file_that_is_no_table_of_mails_is_refused(tmp_path, cells, match):
    (tmp_path / "spambase").mkdir()
    (tmp_path / spambase.FILE).write_bytes(cells)
    with pytest.raises(InputError, match=match):
        run_study("ntoulas-spambase", tmp_path)


def test_a_text_that_is_missing_is_named(films, tmp_path):
    place = tmp_path / text.FOLDER
    place.mkdir(parents=True)
    for name in ("labels.csv", "truth.csv"):
        (place / name).write_bytes((films / text.FOLDER / name).read_bytes())
    (place / "texts.tsv.gz").write_bytes(
        gzip.compress(b"split\ttask\tlabel\ttext\ntrain\tq0\t1\tx\n")
    )
    with pytest.raises(InputError, match="no text of item q1"):
        run_study("ntoulas-text", tmp_path)


@pytest.mark.realdata
def test_850_mails_train_gaussian_naive_bayes_as_well_as_all_and_so_does_random(data):
    study = run_study("ntoulas-spambase", data, quick=True, methods=("gaussian-nb",), repeats=2)
    f = {row["training set"]: row["F"] for row in study.tables[0].to_dict()["rows"]}
    assert f["all 3,701"] == pytest.approx(81.5, abs=1.5)
    assert f["coverage 850"] == pytest.approx(f["all 3,701"], abs=1.5)
    assert f["random 850"] == pytest.approx(f["all 3,701"], abs=1.5)
