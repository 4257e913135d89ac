"""Workers that do not look at spans: rates, tables recovered, exact copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from goldspan.aggregation.workermodels import Prior, get_worker_model
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.simulation.annotators import Cm, Seq
from goldspan.simulation.base import SimulationContext
from simulation.scenes import answer, named, random_truth, truth_of


def within(count, n, p, sigmas=4.5):
    """Return whether a count is within the error of a binomial draw."""
    return abs(count - n * p) <= sigmas * np.sqrt(n * p * (1 - p)) + 1e-9


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("model", ["flip(0.3)", "misses(0.3)"])
def test_the_mistakes_of_sisters_have_the_correlation_that_is_asked_for(rho, model):
    truth = truth_of([["B-LOC"]] * 6000, types=["LOC"])
    team = dict.fromkeys(("a", "b"), f"sister(gpt, {model}, {rho})")
    team["other"] = f"sister(llama, {model}, {rho})"
    answers = simulate_crowd(truth, team).answers
    wrong = [answers.codes[answers.worker == n] != truth.gold for n in range(3)]
    # Each alone errs as often as the model that they are, and two of a family err together.
    assert all(within(one.sum(), 6000, 0.3) for one in wrong)
    assert abs(np.corrcoef(wrong[0], wrong[1])[0, 1] - rho) < 0.06
    assert abs(np.corrcoef(wrong[0], wrong[2])[0, 1]) < 0.06


def test_sisters_answer_the_same_whatever_else_is_asked():
    truth = random_truth(n_items=50)
    team = {"a": "sister(gpt, flip(0.3), 0.5)", "b": "sister(gpt, flip(0.3), 0.5)"}
    both = simulate_crowd(truth, team, seed=4).answers
    mine = both.codes[np.repeat(both.worker == 1, both.lengths)]
    assert (answer_as(truth, "b", team["b"], seed=4) == mine).all()


def answer_as(truth, name, worker, **options):
    """Return the codes of a single worker of a name."""
    return simulate_crowd(truth, {name: worker}, **options).answers.codes


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("encoding", ["BIO", "PLAIN"])
def test_flip_changes_the_given_share_of_tokens(p, encoding):
    truth = random_truth(n_items=3000, encoding=encoding)
    changed = answer(truth, f"flip({p})") != truth.gold
    assert within(changed.sum(), len(changed), p)


def test_flip_gives_every_different_label_alike():
    truth = random_truth(n_items=3000)
    codes, n_labels = answer(truth, "flip(1)"), len(truth.tagset.tags)
    for label in range(n_labels):
        counts = np.bincount(codes[truth.gold == label], minlength=n_labels)
        assert counts[label] == 0
        assert stats.chisquare(np.delete(counts, label)).pvalue > 1e-4


def test_flip_among_used_labels_knows_nothing_but_in_and_out():
    truth = truth_of([["O", "I-NP", "I-NP", "O"]] * 5, types=["NP"])
    flipped = answer(truth, "flip(1, labels=used)")
    assert {truth.tagset.tags[code] for code in flipped} == {"O", "I-NP"}
    assert (flipped != truth.gold).all()
    assert "B-NP" in {truth.tagset.tags[code] for code in answer(truth, "flip(1)")}


def test_flip_among_used_labels_changes_unused_ones_into_any():
    truth = truth_of([["O", "I-NP"] * 500], types=["NP"])
    codes = answer(truth, "spammer(constant, label=B-NP) + flip(1, used)")
    assert set(codes.tolist()) == set(truth.gold.tolist())


def test_flip_refuses_a_truth_with_a_single_label():
    with pytest.raises(InputError, match="only one label"):
        answer(truth_of([["O", "O"]]), "flip(0.1, used)")
    assert answer(draw_truth(5, labels=1), "flip(0)").tolist() == [0] * 5


def scene_table(truth, worker):
    context = SimulationContext(truth, 0, {"w1": worker})
    return worker.confusion(truth.tagset, context.assign("w1", np.arange(truth.n_items)).draws)


def counted(truth, codes, n_previous, begin):
    """Count [previous, truth, given] item by item, token by token."""
    n = len(truth.tagset.tags)
    table = np.zeros((n_previous, n, n))
    for first, last in zip(truth.offsets[:-1], truth.offsets[1:], strict=True):
        previous = begin
        for token in range(first, last):
            table[previous, truth.gold[token], codes[token]] += 1
            previous = codes[token] if n_previous > 1 else 0
    return table


@pytest.mark.parametrize("kind", ["acc", "mace", "cv", "cm", "seq"])
@pytest.mark.parametrize("encoding", ["BIO", "PLAIN"])
def test_the_empirical_confusion_of_a_model_is_its_table(kind, encoding):
    truth = random_truth(
        3, n_items=5000, n_types=3 if encoding == "PLAIN" else 1, encoding=encoding
    )
    worker = named(f"{kind}(diagonal=4)")
    table = scene_table(truth, worker)
    n = len(truth.tagset.tags)
    begin = 0 if kind != "seq" or encoding == "BIO" else n
    assert table.shape == (n + (encoding == "PLAIN") if kind == "seq" else 1, n, n)
    np.testing.assert_allclose(table.sum(axis=2), 1)
    found = counted(truth, answer(truth, worker), len(table), begin)
    total = found.sum(axis=2, keepdims=True)
    error = np.abs(found - total * table)
    assert (error <= 4.5 * np.sqrt(total * table * (1 - table)) + 2).all()
    assert total.sum() == truth.n_tokens


@pytest.mark.parametrize("kind", ["acc", "mace", "cv", "cm", "seq"])
def test_the_table_of_a_model_is_a_draw_from_its_prior(kind):
    truth = random_truth(n_items=1)
    shares = []
    for seed in range(300):
        context = SimulationContext(truth, seed, {})
        worker = named(f"{kind}(diagonal=12, off=1.5)")
        table = worker.confusion(truth.tagset, context.assign("w1", np.arange(1)).draws)
        shares.append(table[-1, 0, 0])
    rng, model = np.random.default_rng(0), get_worker_model(kind)
    mask = truth.tagset.mask if kind == "seq" else None
    n_previous, n = (7, 7) if kind == "seq" else (1, 7)
    wanted = [model.draw(Prior(1.5, 10.5, mask), n_previous, n, rng)[-1, 0, 0] for _ in range(3000)]
    assert stats.ks_2samp(shares, wanted).pvalue > 1e-4


def test_a_sequential_worker_seldom_gives_what_the_encoding_forbids():
    truth = random_truth(n_items=2000)
    mask = truth.tagset.mask
    table = scene_table(truth, named("seq(forbidden=0.001)"))
    assert table[np.repeat(~mask[:, None], 7, axis=1)].mean() < 1e-3


def test_a_given_table_is_used_as_it_is():
    truth = truth_of([["O", "B-PER", "I-PER"]])
    swap = np.eye(7)[[0, 4, 2, 3, 1, 5, 6]][None]
    worker = Cm(table=swap)
    codes = answer(truth, worker)
    assert codes.tolist() == [int(swap[0, code].argmax()) for code in truth.gold]
    assert str(worker) == "cm with a given table"


def test_a_sequential_table_follows_what_was_given_before():
    """After `O` the truth, after anything else `O`: an alternation from the item's start on."""
    truth = truth_of([["B-PER"] * 5, [], ["B-PER"] * 2])
    table = np.zeros((7, 7, 7))
    table[0] = np.eye(7)
    table[1:, :, 0] = 1
    b = truth.tagset.index["B-PER"]
    assert answer(truth, Seq(table=table)).tolist() == [b, 0, b, 0, b, b, 0]


@pytest.mark.parametrize("table", [np.eye(3)[None], np.ones((1, 7, 7)), -np.eye(7)[None]])
def test_a_table_that_is_none_is_refused(table):
    with pytest.raises(InputError, match="table"):
        answer(truth_of([["O"]]), Cm(table=table))


def test_spammers_never_look():
    truth = random_truth(n_items=3000)
    tags = truth.tagset.tags
    assert set(answer(truth, "spammer(constant, label=B-t1)")) == {tags.index("B-t1")}
    assert set(answer(truth, "spammer(frequent)")) == {int(np.bincount(truth.gold).argmax())}
    found = answer(truth, "spammer(random)")
    table = np.zeros((len(tags), len(tags)))
    np.add.at(table, (truth.gold, found), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-4
    assert stats.chisquare(table.sum(axis=0)).pvalue > 1e-4


def test_every_constant_spammer_has_a_label_of_his_own():
    crowd = simulate_crowd(random_truth(n_items=3), ["spammer(constant) x200"])
    by_worker = [set(crowd.answers.codes[crowd.worker_of == w]) for w in range(200)]
    assert all(len(labels) == 1 for labels in by_worker)
    assert len(set().union(*by_worker)) == 7


def test_a_copier_copies_mistakes_and_all():
    truth = random_truth()
    crowd = simulate_crowd(truth, {"a": "flip(0.5)", "b": "copier(a)", "c": "copier(b)"})
    codes = [crowd.answers.codes[crowd.worker_of == w].tolist() for w in range(3)]
    assert codes[0] == codes[1] == codes[2] != truth.gold.tolist()


def test_a_copier_copies_the_given_share_of_items_whole():
    truth = random_truth(n_items=2000, length=8)
    crowd = simulate_crowd(truth, {"a": "spammer(frequent)", "b": "copier(a, 0.3)"})
    first, second = (crowd.answers.codes[crowd.worker_of == w] for w in (0, 1))
    copied = 0
    items = [slice(*pair) for pair in zip(truth.offsets[:-1], truth.offsets[1:], strict=True)]
    different = [s for s in items if (first[s] != truth.gold[s]).any()]
    for s in different:
        assert (second[s] == first[s]).all() or (second[s] == truth.gold[s]).all()
        copied += (second[s] == first[s]).all()
    assert within(copied, len(different), 0.3)


def test_a_copier_copies_what_the_other_would_answer_where_he_has_no_answer():
    truth = random_truth(n_items=60)
    alone = simulate_crowd(truth, {"a": "flip(0.5)", "b": "copier(a)"}, per_item=1, seed=3)
    both = simulate_crowd(truth, {"a": "flip(0.5)", "b": "copier(a)"}, seed=3)
    for n in range(60):
        ((_, tags),) = alone.answers_of(n).items()
        assert tags == both.answers_of(n)["a"]


@pytest.mark.parametrize(
    ("team", "message"),
    [
        ({"a": "copier(a)"}, "circle"),
        ({"a": "copier(b)", "b": "drift(flip(0.1), copier(a))"}, "circle"),
        ({"x": "copier(b)", "b": "copier(c)", "c": "copier(b)"}, "circle"),
        ({"a": "copier(nobody)"}, "nobody"),
    ],
)
def test_copiers_need_a_source_and_no_circle(team, message):
    with pytest.raises(InputError, match=message):
        simulate_crowd(random_truth(n_items=2), team)


def test_a_sudden_drift_changes_at_its_moment():
    truth = random_truth(n_items=2000)
    crowd = simulate_crowd(
        truth, ["drift(perfect, spammer(constant, label=I-t0), at=0.25)"], times=True
    )
    begin, week = 1_577_836_800_000, 7 * 24 * 3_600_000
    late = (crowd.answers.submitted - begin) / week >= 0.25
    per_token = np.repeat(late, np.diff(truth.offsets))
    assert within(late.sum(), 2000, 0.75)
    spam = truth.tagset.index["I-t0"]
    np.testing.assert_array_equal(crowd.answers.codes, np.where(per_token, spam, truth.gold))


def test_an_even_drift_grows_worse_evenly():
    truth = random_truth(n_items=20_000, length=3)
    crowd = simulate_crowd(truth, ["drift(flip(0.1), flip(0.5))"], times=True)
    order = np.repeat(crowd.answers.submitted, np.diff(truth.offsets)).argsort(kind="stable")
    wrong = (crowd.answers.codes != truth.gold)[order]
    rates = [part.mean() for part in np.array_split(wrong, 4)]
    np.testing.assert_allclose(rates, [0.15, 0.25, 0.35, 0.45], atol=0.02)


def test_a_drift_within_a_habit_keeps_the_moments_of_its_worker():
    truth = random_truth(n_items=300)
    change = "drift(perfect, spammer(constant, label=O), at=0.5)"
    inside = f"drift({change}, {change}, at=0.5)"
    np.testing.assert_array_equal(answer(truth, change), answer(truth, inside))


def test_unknown_labels_and_kinds_are_refused_with_the_names():
    truth = random_truth(n_items=1)
    with pytest.raises(UnknownNameError, match="B-t0"):
        answer(truth, "spammer(constant, label=B-t9)")
    with pytest.raises(InputError, match="constant"):
        named("spammer(random, label=O)")
