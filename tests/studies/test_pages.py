"""Pages of results hold the numbers of the current code: a cheap row of each is made again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from goldspan import aggregate, read_crowd
from goldspan.selection import Features, Pool, Schedule
from goldspan.spans import Tagged
from goldspan.spans.scoring import score_codes
from studies.campaign_ner.play import Bench
from studies.li_liu.pools import read_pool
from studies.li_liu.trial import accuracy, begin, vote
from studies.ntoulas.spambase import FILE, N_GOLD, read_mails
from studies.ntoulas.trial import EVERYTHING, Training, run_trial

pytestmark = pytest.mark.realdata


def rows_of(page: Path, *names: str) -> list[dict[str, str]]:
    """Return the rows of a page's tables that begin with some names, as cells by heading."""
    found, heads = [], []
    for line in page.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip(" *`") for cell in line.strip("|").split("|")]
        heads = heads or cells
        if tuple(cells[: len(names)]) == names:
            found.append(dict(zip(heads, cells, strict=True)))
    assert found, f"{page.name} has no row {' | '.join(names)}"
    return found


def labelled(data, name, method):
    folder = data / "classification" / name
    crowd = read_crowd(folder / "labels.csv", gold=folder / "truth.csv")
    known = crowd.gold_tagged.codes >= 0
    codes = aggregate(crowd, method).codes
    return 100 * (codes == crowd.gold_tagged.codes)[known].mean()


@pytest.fixture(scope="module")
def news(data):
    return read_crowd(data / "ner_mturk" / "crowd.tsv.gz")


def rates(crowd, codes):
    score = score_codes(crowd.gold_tagged, Tagged(codes, crowd.offsets), crowd.tagset)
    return [f"{100 * x:.2f}" for x in (score.precision, score.recall, score.f1)]


def test_worker_models(data, root):
    crowd = read_crowd(data / "ner_mturk" / "crowd_6056.tsv.gz")
    codes = aggregate(crowd, "ds").codes
    half = np.array(crowd.attributes.column("split").to_pylist()) == "test"
    codes = codes[np.repeat(half, np.diff(crowd.offsets))]
    row, *_ = rows_of(root / "docs" / "results-bsc.md", "ds", "test")
    assert row["published F1"]  # the table of the paper's file comes first
    assert [row[name] for name in ("P", "R", "F1")] == rates(crowd.select_items(half), codes)


def test_crowd_crfs(news, root):
    found = rates(news, aggregate(news, "mv-token").codes)
    rows = rows_of(root / "docs" / "results-rodrigues.md", "mv-token")
    assert found in [[row.get(name) for name in ("P", "R", "F1")] for row in rows]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_a_campaign_on_recorded_answers(news, root, n):
    (row,) = rows_of(root / "docs" / "results-campaign.md", f"{n} of each sentence")
    bench = Bench(news)
    revealed = bench.revealed(0)
    revealed.ask(n)
    bought = revealed.asked >= 0
    money = 100 * bench.prices[bought].sum() / bench.prices.sum()
    assert row["% of answers"] == f"{100 * bought.mean():.1f}"
    assert row["% of money"] == f"{money:.1f}"


def test_adaptive_redundancy(data, root):
    (row,) = [
        row
        for row in rows_of(root / "docs" / "results-redundancy.md", "all, at most 20")
        if float(row["mean"]) > 50
    ]
    for name in ("dog", "snow_wsd", "face_sentiment"):
        assert row[name] == f"{labelled(data, name, 'ds'):.1f}"


def test_every_crowd(data, root):
    rows = rows_of(root / "docs" / "results-purity.md", "dog")
    row = next(row for row in rows if {"mv-token", "ds"} <= row.keys())
    for method in ("mv-token", "ds"):
        assert row[method] == f"{labelled(data, 'dog', method):.1f}"


def test_worker_selection(data, root):
    row, *_ = rows_of(root / "docs" / "results-li-liu.md", "votes of all 39")
    pool, combine = read_pool(data, "bluebirds", 10), vote("mv-token")
    everybody = np.arange(pool.crowd.n_workers)
    trials = (begin(pool, seed) for seed in range(100))
    right = [accuracy(trial, combine(trial, everybody)) for trial in trials]
    assert row["measured"] == f"{np.mean(right):.4f}"


def test_data_selection(data, root):
    (row, *_) = rows_of(root / "docs" / "results-ntoulas.md", "gaussian-nb", "all 3,701")
    mails = read_mails(data / FILE)
    everything = Training(EVERYTHING, len(mails.is_spam) - N_GOLD)
    f = []
    for seed in range(10):
        trial = run_trial(mails.draw(seed), [everything], ["gaussian-nb"], seed)
        f.append(trial.scores["gaussian-nb", everything].f)
    assert row["F"] == f"{np.mean(f):.2f}"


@pytest.fixture(scope="module")
def conll(data):
    """The pool of the study, and its attribute values."""
    train = read_crowd(data / "conll2003" / "train.tsv.gz", format="conll",
                       columns={"tag": "ner_bio"})  # fmt: skip
    pool = Pool.of(train)
    return train, pool, Features.fit(pool)


@pytest.mark.parametrize("rule", ["random", "coverage", "coverage-paper"])
def test_active_learning_for_names(conll, root, rule):
    (row,) = rows_of(root / "docs" / "results-selection.md", "2500", rule)
    train, pool, features = conll
    words = np.array(train.tokens.flatten().to_pylist())
    once = {word for word, n in Counter(words.tolist()).items() if n == 1}
    item = np.repeat(np.arange(train.n_items), np.diff(train.offsets))
    is_name = np.char.startswith(np.array(train.tagset.tags)[train.gold_tagged.codes], "B-")
    found = []
    for seed in range(5):
        batch = Schedule(text=rule).select(
            pool, budget="2500tokens", features=features, random_state=seed
        ).item  # fmt: skip
        token = np.isin(item, batch)
        own, n = set(words[token].tolist()), token.sum()
        names = 100 * is_name[token].sum() / n
        found.append(
            (len(batch), n, n / len(batch), names, len(own), 100 * len(own & once) / len(own))
        )
    sizes = [
        f"{mean:.{digits}f}"
        for mean, digits in zip(np.mean(found, axis=0), (0, 0, 1, 1, 0, 0), strict=True)
    ]
    assert list(row.values())[2:] == sizes


def test_benchmarks(data, root):
    rows = rows_of(root / "benchmarks" / "RESULTS.md", "goldspan ds")
    row = next(row for row in rows if "mean rank" in row)
    for name in ("bluebirds", "dog", "snow_temp"):
        assert row[name] == f"{labelled(data, name, 'ds'):.2f}"
