"""Workers made of a CRF with noise: one CRF for all, consistent, worse with more noise."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.crowd import convert_crowd
from goldspan.errors import InputError
from goldspan.runners import Threads
from goldspan.simulation import TruthTagger, draw_truth, measure_workers, simulate_crowd
from goldspan.tagger import CRF, HMM
from goldspan.tagger.base import potentials_of
from simulation.scenes import truth_of


@pytest.fixture(scope="module")
def truth(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.fixture(scope="module")
def tagger(truth):
    return TruthTagger.train(truth, max_iter=40)


def codes_of(crowd, worker):
    return crowd.answers.codes[crowd.worker_of == worker]


def test_without_noise_the_answers_are_those_of_the_crf(truth, tagger):
    crowd = simulate_crowd(truth, ["crf_noise(0)"], tagger=tagger)
    wanted = tagger.crf.predict(truth.tokens_list)
    assert [crowd.answers_of(n)["w1"] for n in range(truth.n_items)] == wanted


def test_more_noise_makes_worse_workers_and_each_errs_in_a_way_of_his_own(truth, tagger):
    noises = (0.005, 0.05, 0.05, 0.5, 5)
    crowd = simulate_crowd(truth, [f"crf_noise({n})" for n in noises], tagger=tagger)
    f1 = [rates.f1 for rates in measure_workers(crowd)]
    assert 0.98 < f1[0] <= 1
    assert f1[0] > max(f1[1:3]) > min(f1[1:3]) > f1[3] > f1[4]
    assert (codes_of(crowd, 1) != codes_of(crowd, 2)).any()


def test_noise_has_the_variance_asked_for_on_every_parameter(truth, tagger, monkeypatch):
    seen = []

    def spy(features, weights, masks):
        seen.append(weights.vector - tagger.crf.weights_.vector)
        return potentials_of(features, weights, masks)

    monkeypatch.setattr("goldspan.simulation.base.potentials_of", spy)
    simulate_crowd(truth, ["crf_noise(0.25)"], tagger=tagger)
    (noise,) = seen
    assert noise.mean() == pytest.approx(0, abs=4 * 0.5 / np.sqrt(len(noise)))
    assert noise.var() == pytest.approx(0.25, rel=0.05)
    steps = noise[-len(tagger.crf.codec_.tags) * (len(tagger.crf.codec_.tags) + 2) :]
    assert steps.var() == pytest.approx(0.25, rel=0.5)


def test_a_noisy_worker_gives_the_same_words_the_same_tags_and_a_flipping_one_does_not(truth):
    rows = zip(truth.tokens_list[:20], truth.tagset.decode(truth.gold_tagged), strict=False)
    item = ["".join(f"{w}\t{t}\n" for w, t in zip(*row, strict=True)) + "\n" for row in rows]
    twice = goldspan.read_crowd("".join(item * 2).encode(), format="conll")
    crowd = simulate_crowd(twice, ["crf_noise(3)", "flip(0.2)"])
    for worker, is_consistent in ((0, True), (1, False)):
        first, second = np.split(codes_of(crowd, worker), 2)
        assert (first == second).all() == is_consistent
        assert (first != twice.gold[: len(first)]).any()


def test_answers_are_well_formed(truth, tagger):
    crowd = simulate_crowd(truth, ["crf_noise(9)"], tagger=tagger)
    mended = simulate_crowd(truth, ["crf_noise(9)"], tagger=tagger, legal=True)
    assert crowd == mended


def test_answers_do_not_depend_on_the_other_items_or_workers(truth, tagger):
    some = np.arange(20, 60)
    part = truth.select_items(some)
    alone = simulate_crowd(
        part, {"x": "crf_noise(0.3)"}, tagger=TruthTagger.of(tagger.crf, part), seed=4
    )
    every = simulate_crowd(
        truth, {"y": "flip(1)", "x": "crf_noise(0.3)"}, tagger=tagger, seed=4, runner=Threads(2)
    )
    for n, item in enumerate(some.tolist()):
        assert alone.answers_of(n)["x"] == every.answers_of(item)["x"]


def test_one_crf_is_trained_for_all_workers_with_the_same_features(truth, monkeypatch):
    trained = []
    fit = CRF.fit

    def count(self, *args, **kwargs):
        trained.append(self.templates)
        self.max_iter = 3
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(CRF, "fit", count)
    few = truth.select_items(np.arange(10))
    team = ["crf_noise(0.1) x3", "drift(crf_noise(1), flip(0.1))", "crf_noise(1, templates=hmm)"]
    simulate_crowd(few, team)
    assert trained == ["rodrigues", "hmm"]
    simulate_crowd(few, team[:2], tagger=CRF(max_iter=3).fit([["a"]], [["O"]]))
    assert trained == ["rodrigues", "hmm", "default"]


def test_a_crf_trained_elsewhere_answers_other_items(truth, tagger):
    other = truth.select_items(np.arange(30))
    given = simulate_crowd(other, ["crf_noise(0.1)"], tagger=tagger.crf)
    made = simulate_crowd(other, ["crf_noise(0.1)"], tagger=TruthTagger.of(tagger.crf, other))
    assert given == made


def test_items_without_a_token_are_answered():
    truth = truth_of([[], ["B-PER", "O"], [], ["O"]])
    crowd = simulate_crowd(truth, ["crf_noise(0.1)"])
    assert crowd.answers.lengths.tolist() == [0, 2, 0, 1]


def test_single_labels_and_other_encodings_can_be_learned(truth):
    labels = simulate_crowd(draw_truth(50, shares=[9, 1]), ["crf_noise(0.01)"])
    assert labels.answers.codes.shape == (50,)
    other = convert_crowd(truth, "IOBES", "conlleval").select_items(np.arange(30))
    crowd = simulate_crowd(other, ["crf_noise(0)"])
    assert measure_workers(crowd)[0].accuracy > 0.95


def test_taggers_that_do_not_fit_are_refused(truth, tagger):
    other = truth_of([["O"]])
    with pytest.raises(InputError, match="the tagger gives BIO tags"):
        simulate_crowd(other, ["crf_noise(1)"], tagger=tagger.crf)
    with pytest.raises(InputError, match="other items"):
        simulate_crowd(truth.select_items(np.arange(3)), ["crf_noise(1)"], tagger=tagger)
    for wrong in (CRF(), HMM().fit([["a"]], [["O"]])):
        with pytest.raises(InputError, match="trained CRF"):
            simulate_crowd(truth, ["crf_noise(1)"], tagger=wrong)
