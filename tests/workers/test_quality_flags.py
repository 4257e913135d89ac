"""Signs on simulated workers: the careless are found, the honest left alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import find_quality_flags
from goldspan.workers.copying import PASTING, equal_answers
from goldspan.workers.quality_flags import true_labels
from goldspan.workers.reliability import (
    FlagContext,
    QualityFlag,
    at_least,
    at_most,
    find_truth,
)

TEAM = (
    "flip(0.2) x14",
    "con=spammer(constant)",
    "ran=spammer(random)",
    "dri=drift(flip(0.05), flip(0.5))",
    "cop=copier(w3)",
)


def crowd_of(team: tuple[str, ...], n_labels: int, seed: int, **options: object) -> Crowd:
    items = 2000 if options.get("per_item") else 400
    return simulate_crowd(draw_truth(items, n_labels, seed=seed), team, seed=seed, **options)


def kinds_of(flags: list[QualityFlag], worker: str) -> set[str]:
    return {flag.kind for flag in flags if flag.worker == worker}


def table_of(crowd: Crowd) -> np.ndarray:
    """The labels of a crowd in which every worker may answer every item, -1 for none."""
    table = np.full((crowd.n_items, crowd.n_workers), -1)
    table[crowd.answers.item, crowd.answers.worker] = crowd.answers.codes
    return table


def reread(crowd: Crowd, **columns: np.ndarray) -> Crowd:
    return replace(crowd, answers=replace(crowd.answers, **columns))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("shape", [(2, {}), (4, {"per_item": 5})], ids=["all", "some"])
@pytest.mark.parametrize("has_gold", [True, False])
def test_the_careless_are_found_and_nobody_else(shape, seed, has_gold):
    n_labels, options = shape
    crowd = crowd_of(TEAM, n_labels, seed, times=True, **options)
    flags = find_quality_flags(crowd if has_gold else crowd.with_gold(None))
    assert "constant" in kinds_of(flags, "con")
    assert "base rate" in kinds_of(flags, "ran")
    if has_gold:
        assert "drift" in kinds_of(flags, "dri")
    if has_gold or not options:  # without gold the two outvote the truth on their items
        assert "copies" in kinds_of(flags, "cop")
    honest = {f"w{n}" for n in range(1, 15)} - {"w3"}
    assert not {flag.worker for flag in flags} & honest


@pytest.mark.parametrize(
    "team", ["flip(0.2) x20", "cm x20", "mace x20", "cv x20"], ids=lambda team: team[:-4]
)
def test_honest_crowds_are_left_alone(team):
    marked, n = 0, 0
    for seed in range(6):
        crowd = crowd_of((team,), 3, seed, per_item=5, workload="zipf")
        for one in (crowd, crowd.with_gold(None)):
            marked += len({flag.worker for flag in find_quality_flags(one)})
            n += crowd.n_workers
    assert marked / n < 0.03


def test_a_rare_label_does_not_make_careful_workers_constant():
    truth = draw_truth(400, ["no", "yes"], shares=[9, 1], seed=3)
    team = ["flip(0.05) x10", "con=spammer(frequent)"]
    flags = find_quality_flags(simulate_crowd(truth, team, seed=3), kinds=["constant", "base rate"])
    assert {flag.worker for flag in flags} == {"con"}


def test_the_constant_sign_says_what_was_seen():
    truth = draw_truth(300, ["no", "yes"], seed=4)
    crowd = simulate_crowd(truth, ["flip(0.1) x4", "con=spammer(constant, label=yes)"], seed=4)
    flag = find_quality_flags(crowd, kinds=["constant"])[0]
    assert flag.evidence.startswith("100 % of 300 answers say yes, of the others'")
    assert (flag.strength, flag.numbers["answers"]) == (1.0, 300)
    assert str(flag).startswith("constant: 100 %")


@pytest.fixture(scope="module")
def texts(root) -> Crowd:
    """Honest and careless workers on tagged texts."""
    truth = read_crowd(root / "examples" / "crowd.tsv")
    team = {f"w{n}": "misses(0.15) + flip(0.03)" for n in range(6)}
    team |= {"con": "spammer(frequent)", "ran": "spammer(random)", "cop": "copier(w1)"}
    return simulate_crowd(truth, team, seed=1, times=True)


def test_texts_have_signs_too(texts):
    flags = find_quality_flags(texts)
    assert kinds_of(flags, "con") == {"constant"}
    assert "base rate" in kinds_of(flags, "ran")
    assert "copies" in kinds_of(flags, "cop")
    assert "mark nothing" in next(s.evidence for s in flags if s.worker == "con")
    copied = next(s.evidence for s in flags if s.worker == "cop" and s.kind == "copies")
    assert " left out the same span, or gave the same wrong one, " in copied
    assert {flag.worker for flag in flags} <= {"con", "ran", "cop", "w1"}


def test_times_tell_who_copied_whom():
    crowd = crowd_of(("flip(0.3) x8", "cop=copier(w2)"), 3, 5, times=True)
    submitted = crowd.answers.submitted.copy()
    source, copier = crowd.worker_index("w2"), crowd.worker_index("cop")
    taken = crowd.answers.worker == copier
    # The copier answers a minute after the source; both answered everything.
    submitted[taken] = submitted[crowd.answers.worker == source] + 60_000
    flags = find_quality_flags(reread(crowd, submitted=submitted), kinds=["copies"])
    assert [flag.worker for flag in flags] == ["cop"]
    assert " cop answered after w2 in 100 % of them. " in flags[0].evidence
    assert flags[0].numbers["other"] == "w2"


def test_the_question_counts_what_is_there():
    crowd = crowd_of(("flip(0.25) x9", "cop=flip(0.02) + copier(w2, 0.6)"), 3, 6)
    flags = {flag.worker: flag for flag in find_quality_flags(crowd, kinds=["copies"])}
    assert set(flags) == {"cop", "w2"}
    table = table_of(crowd)
    cop, source = table[:, crowd.worker_index("cop")], table[:, crowd.worker_index("w2")]
    equal = (cop == source) & (cop != crowd.gold)
    expected = sum(
        (cop[crowd.gold == j] == c).sum() * (source[crowd.gold == j] == c).mean()
        for j in range(3)
        for c in range(3)
        if c != j
    )
    items = [str(crowd.item_ids[n]) for n in np.flatnonzero(equal)[:3]]
    assert flags["cop"].evidence == (
        f"Did cop and w2 work together? On 400 shared items they gave the same wrong label "
        f"{equal.sum()} times; independent workers with as many mistakes would do so about "
        f"{expected:.0f} times. Compare items {', '.join(items)}."
    )
    assert str(flags["cop"]) == flags["cop"].evidence
    for worker, codes in (("cop", cop), ("w2", source)):
        assert flags[worker].numbers["wrong"] == (codes != crowd.gold).sum()
        assert flags[worker].strength == equal.sum() / (codes != crowd.gold).sum()


def test_without_gold_the_question_leaves_open_who_is_right():
    crowd = crowd_of(("flip(0.25) x9", "cop=flip(0.02) + copier(w2, 0.6)"), 2, 6)
    flags = find_quality_flags(crowd.with_gold(None), kinds=["copies"])
    assert {flag.worker for flag in flags} == {"cop", "w2"}
    assert all(
        flag.evidence.endswith(" Or are these two right, and the others wrong?") for flag in flags
    )
    table = table_of(crowd)
    cop, source = table[:, crowd.worker_index("cop")], table[:, crowd.worker_index("w2")]
    equal = ((cop == source) & (cop != crowd.gold)).sum()
    assert all(flag.numbers["equal"] == pytest.approx(equal, rel=0.1) for flag in flags)


def right(share: float) -> str:
    """A worker on spans who is right about so many of them."""
    p = 1 - share
    return f"misses({0.4 * p:g}) + wrong_type({0.3 * p:g}) + late({0.3 * p:g})"


FEW = [(0.95, 0.9, 0.35), (0.9, 0.9, 0.75), (0.9, 0.9, 0.9, 0.35), (0.9, 0.9, 0.85, 0.35, 0.35)]


@pytest.mark.parametrize("shares", FEW, ids=str)
@pytest.mark.parametrize("n_labels", [2, 4, "spans"])
def test_few_independent_workers_are_not_accused(root, shares, n_labels):
    """One bad worker of three decides what is wrong by a vote: the good ones seem to copy."""
    spans = read_crowd(root / "examples" / "crowd.tsv")
    for n_items in (300, 100) if n_labels != "spans" else (spans.n_items,):
        for seed in range(3):
            if n_labels == "spans":
                truth, models = spans, [right(share) for share in shares]
            else:
                truth, models = (
                    draw_truth(n_items, n_labels, seed=seed),
                    [f"flip({1 - share:g})" for share in shares],
                )
            team = {f"w{n}": model for n, model in enumerate(models)}
            crowd = simulate_crowd(truth, {**team, "gpt": models[0]}, seed=seed).with_gold(None)
            people, model = (
                crowd.select_workers(np.flatnonzero(np.arange(len(team) + 1) // len(team) == part))
                for part in (0, 1)
            )
            assert not find_quality_flags(people, kinds=["copies", PASTING], probes=model)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_independent_workers_whose_mistakes_depend_on_the_class_are_not_accused(n_labels):
    for seed in range(6):
        workers = 5 + seed
        truth = draw_truth(200, n_labels, seed=seed)
        crowd = simulate_crowd(truth, [f"cm(6, 1) x{workers}"], seed=seed)
        for one in (crowd, crowd.with_gold(None)):
            assert not find_quality_flags(one, kinds=["copies"])


@pytest.mark.parametrize("share", [1.0, 0.9, 0.7])
@pytest.mark.parametrize("n_labels", [2, 4, "spans"])
def test_copies_among_six_and_seven_are_found_and_nobody_else(root, n_labels, share):
    for n_workers in (6, 7):
        for seed in (0, 1):
            truth, own = read_crowd(root / "examples" / "crowd.tsv"), right(0.8)
            if n_labels != "spans":
                truth, own = draw_truth(300, n_labels, seed=seed), "flip(0.2)"
            team = {f"w{n}": own for n in range(n_workers - 1)} | {
                "cop": f"{own} + copier(w1, {share})"
            }
            crowd = simulate_crowd(truth, team, seed=seed).with_gold(None)
            flags = find_quality_flags(crowd, kinds=["copies"])
            assert {flag.worker for flag in flags} == {"cop", "w1"}


def test_among_three_copies_are_found_with_gold_alone():
    crowd = crowd_of(("flip(0.2) x2", "cop=flip(0.2) + copier(w1, 0.9)"), 3, 1)
    flags = find_quality_flags(crowd, kinds=["copies"])
    assert {flag.worker for flag in flags} == {"cop", "w1"}
    assert not find_quality_flags(crowd.with_gold(None), kinds=["copies"])


def test_two_who_know_what_the_others_do_not_are_not_accused():
    """A quarter of the items is hard for ten of twelve workers, who fall into the same trap."""
    rng = np.random.default_rng(5)
    hard = np.where(rng.random(300) < 0.25, 0.7, 0.1)[:, None]
    wrong = rng.random((300, 12)) < np.where(np.arange(12) < 2, 0.05, hard)
    labels = np.where(wrong ^ (rng.random((300, 1)) < 0.5), "x", "y")
    rows = [f"{n},{w},{labels[n, w]}" for n, w in np.ndindex(labels.shape)]
    assert not find_quality_flags(
        read_crowd("\n".join(["task,worker,label", *rows]).encode()), kinds=["copies"]
    )


def test_the_likelihood_is_that_of_adding_up_all_truths():
    from goldspan.workers.copying import _PairModel, _Units

    rng = np.random.default_rng(3)
    table = rng.integers(0, 3, (9, 5))
    unit, worker = (part.ravel() for part in np.indices(table.shape))
    units = _Units(np.arange(9), np.full(9, -1), unit, worker, table.ravel(), 3)
    model = _PairModel(units, np.array([1, 3]), np.zeros(0, np.int64))
    start = rng.dirichlet(np.ones(3), 9)
    for rho in (0.0, 0.5):
        model_fit = model.fit(start, rho, rounds=1)
        same = table[:, 1] == table[:, 3]
        copied = rho * same
        weight = np.where(worker == 1, 1 - copied[unit], 1.0)
        tables, prior = model.tables(start, weight), (start.sum(axis=0) + 0.5) / 10.5
        rate = (copied.sum() + 0.5) / 10 if rho else 0.0
        for n, row in enumerate(table):
            total = 0.0
            for j in range(3):
                p = prior[j] * np.prod([tables[j, w, row[w]] for w in (0, 2, 3, 4)])
                total += p * ((1 - rate) * tables[j, 1, row[1]] + rate * (row[1] == row[3]))
            assert model_fit.log_prob[n] == pytest.approx(np.log(total))


def test_half_copies_are_found_with_gold():
    crowd = crowd_of(("flip(0.3) x9", "cop=flip(0.3) + copier(w2, 0.5)"), 4, 6)
    assert "copies" in kinds_of(find_quality_flags(crowd, kinds=["copies"]), "cop")


def test_hard_items_make_no_copies():
    """On a third of the items everybody tends to the same wrong answer."""
    rng = np.random.default_rng(7)
    n_items, n_workers = 300, 15
    hard = rng.random(n_items) < 0.33
    rows = ["task,worker,label,gold"]
    for n in range(n_items):
        for w in range(n_workers):
            wrong = rng.random() < (0.7 if hard[n] else 0.1)
            label = "x" if not wrong else "y" if hard[n] else rng.choice(["y", "z"])
            rows.append(f"{n},{w},{label},x")
    assert not find_quality_flags(read_crowd("\n".join(rows).encode()), kinds=["copies"])


def test_too_fast_needs_times_and_gives_the_quality_beside():
    crowd = crowd_of(("flip(0.1) x9", "eve=flip(0.4)"), 2, 8, times=True)
    rng = np.random.default_rng(8)
    assert not find_quality_flags(crowd, kinds=["too fast"])
    seconds = rng.lognormal(np.log(8), 0.5, len(crowd.answers))
    seconds[crowd.answers.worker == crowd.worker_index("eve")] /= 8
    started = crowd.answers.submitted - (1000 * seconds).astype(np.int64)
    flag, *others = find_quality_flags(reread(crowd, started=started), kinds=["too fast"])
    assert not others
    assert flag.worker == "eve"
    assert flag.numbers["seconds"] == pytest.approx(1, rel=0.2)
    assert "s for an answer in the median, the median worker 8" in flag.evidence
    assert "of the labels right, the others 89 %" in flag.evidence


def test_drift_goes_by_time_and_not_by_the_order_in_the_file():
    crowd = crowd_of(("flip(0.1) x6", "dri=drift(flip(0.05), flip(0.5), at=0.5)"), 2, 9, times=True)
    flag = find_quality_flags(crowd, kinds=["drift"])[0]
    assert flag.worker == "dri"
    assert flag.numbers["before"] == pytest.approx(0.95, abs=0.05)
    assert flag.numbers["after"] == pytest.approx(0.5, abs=0.1)
    assert flag.numbers["before_change"] == pytest.approx(200, abs=30)
    order = np.argsort(crowd.answers.submitted)
    shuffled = replace(crowd, answers=crowd.answers.take(order))
    assert find_quality_flags(shuffled, kinds=["drift"])[0].evidence == flag.evidence
    assert not find_quality_flags(reread(crowd, submitted=None), kinds=["drift"])


def test_items_that_become_harder_are_no_drift():
    truth = draw_truth(400, 2, seed=10)
    easy = simulate_crowd(truth.select_items(np.arange(200)), ["flip(0.02) x8"], seed=1)
    hard = simulate_crowd(truth.select_items(np.arange(200, 400)), ["flip(0.4) x8"], seed=2)
    rows = [
        f"{prefix}{n},{w},{tags[0]},{gold[0]}"
        for prefix, part in (("a", easy), ("b", hard))
        for n, gold in enumerate(part.tagset.decode(part.gold_tagged))
        for w, tags in part.answers_of(n).items()
    ]
    crowd = read_crowd(("task,worker,label,gold\n" + "\n".join(rows)).encode())
    assert not find_quality_flags(crowd, kinds=["drift"])


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40, unique=True))
def test_the_choice_of_the_others_is_that_of_counting_without_oneself(rows):
    cells = {(item, worker): label for item, worker, label in rows}
    text = "".join(f"{i},w{w},{c}\n" for (i, w), c in cells.items())
    crowd = read_crowd(f"task,worker,label\n{text}".encode())
    groups, answers = equal_answers(crowd), crowd.latest
    item = answers.item.astype(np.int64)
    truth = find_truth(crowd, None, goldspan.aggregate(crowd, "mv-token"))
    found = true_labels(FlagContext(truth))
    for a in range(len(answers)):
        rest = Counter(
            answers.codes[b] for b in range(len(answers)) if item[b] == item[a] and b != a
        ).most_common()
        is_clear = rest and (len(rest) == 1 or rest[0][1] > rest[1][1])
        assert found[a] == (rest[0][0] if is_clear else -1)
    same = groups.of[:, None] == groups.of[None]
    assert (same == ((item[:, None] == item) & (answers.codes[:, None] == answers.codes))).all()


def test_tails_are_those_of_the_binomial():
    from scipy.stats import binom

    count, n = np.array([0, 3, 9]), np.array([5, 7, 9])
    assert at_least(count, n, 0.3) == pytest.approx(binom.sf(count - 1, n, 0.3), abs=1e-9)
    assert at_most(count, n, 0.3) == pytest.approx(binom.cdf(count, n, 0.3), abs=1e-9)


def test_signs_come_strongest_first_and_always_the_same():
    crowd = crowd_of(TEAM, 2, 0, times=True)
    flags = find_quality_flags(crowd)
    assert [s.strength for s in flags] == sorted([s.strength for s in flags], reverse=True)
    assert find_quality_flags(crowd) == flags
    assert all(0 <= s.strength <= 1 and s.p_value < 0.05 for s in flags)


def test_a_result_says_what_is_right_where_there_is_no_gold():
    crowd = crowd_of(TEAM, 2, 0, times=True).with_gold(None)
    by_default = find_quality_flags(crowd, kinds=["drift"])
    assert by_default == find_quality_flags(
        crowd, result=goldspan.aggregate(crowd, "ds"), kinds=["drift"]
    )


@pytest.mark.parametrize(
    "text",
    ["task,worker,label\n1,a,x\n", "task,worker,label\n1,a,x\n1,b,x\n2,a,x\n2,b,x\n"],
    ids=["one answer", "one label"],
)
def test_tiny_crowds_have_no_signs(text, monkeypatch):
    monkeypatch.setattr("goldspan.workers.quality_flags.LEAST_TESTED", 2)
    assert find_quality_flags(read_crowd(text.encode())) == []


def test_a_crowd_without_answers_has_no_signs():
    assert find_quality_flags(draw_truth(5)) == []


def test_unknown_signs_are_refused():
    names = "constant, base rate, copies, copies a model, too fast, drift"
    with pytest.raises(UnknownNameError, match=names):
        find_quality_flags(draw_truth(5), kinds=["bot"])


@pytest.mark.realdata
def test_few_real_workers_have_signs(data):
    flagged, n = 0, 0
    for name in ("dog", "face_sentiment", "snow_rte", "web", "weather_tweets_amt"):
        folder = data / "classification" / name
        crowd = read_crowd(folder / "labels.csv", gold=folder / "truth.csv")
        flagged += len({flag.worker for flag in find_quality_flags(crowd)})
        n += crowd.n_workers
    assert 0 < flagged / n < 0.05


def test_one_sign_can_be_named_alone():
    crowd = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n")
    assert find_quality_flags(crowd, kinds="drift") == find_quality_flags(crowd, kinds=["drift"])
