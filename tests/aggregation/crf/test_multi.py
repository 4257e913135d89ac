"""MultiCRF: candidates, priors and soft targets, against enumeration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import aggregate
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.crf import MultiCrf, MultiCrfMax, candidates, updated
from goldspan.aggregation.crf.rounds import State, TokenTargets, TrainingSequences, prepare
from goldspan.errors import UnknownNameError
from goldspan.runners import FileCheckpoint
from goldspan.spans import Codec

FEW = ("lower", "suffix3", "is_title", "lower[-1]")
BIO = Codec.from_types(["X", "Y"], "BIO")


def inputs_of(items, known=None):
    crowd = oracle.crowd_of(BIO, items)
    return prepare(crowd, FitContext(known=known), "rodrigues", 1)


def test_every_workers_label_begins_with_the_same_prior_and_all_do_where_nobody_gave_one():
    inputs = inputs_of([{0: [0, 1, -1], 1: [0, -1, -1], 2: [1, 2, -1]}])
    expected = [[2 / 3, 1 / 3, 0, 0, 0], [0, 1 / 2, 1 / 2, 0, 0], [1 / 5] * 5]
    np.testing.assert_allclose(candidates(inputs), expected)


def test_a_spammer_among_five_begins_with_a_fifth_or_as_one_of_two_labels_with_a_half():
    inputs = inputs_of([{0: [0], 1: [0], 2: [0], 3: [0], 4: [1]}])
    np.testing.assert_allclose(candidates(inputs), [[4 / 5, 1 / 5, 0, 0, 0]])
    np.testing.assert_allclose(candidates(inputs, "uniform"), [[1 / 2, 1 / 2, 0, 0, 0]])


def test_candidates_may_begin_alike_however_many_gave_them():
    inputs = inputs_of([{0: [0, 1, -1], 1: [0, 2, -1], 2: [1, 2, -1]}])
    expected = [[1 / 2, 1 / 2, 0, 0, 0], [0, 1 / 2, 1 / 2, 0, 0], [1 / 5] * 5]
    np.testing.assert_allclose(candidates(inputs, "uniform"), expected)


def test_max_with_votes_learns_the_majority_at_once(crowd):
    options = {"templates": FEW, "max_iter": 1, "steps": 20}
    votes = goldspan.score(crowd, aggregate(crowd, "multicrf-max", **options)).f1
    alike = goldspan.score(crowd, aggregate(crowd, "multicrf-max", **options, begin="uniform")).f1
    assert votes > alike + 0.1
    with pytest.raises(UnknownNameError, match="value of begin"):
        MultiCrf(begin="majority")


def test_known_truth_is_the_only_candidate():
    known = np.array([2, -1], np.int16)
    prior = candidates(inputs_of([{0: [0, 1], 1: [0, 0]}], known))
    np.testing.assert_allclose(prior, [[0, 0, 1, 0, 0], [1 / 2, 1 / 2, 0, 0, 0]])


def test_priors_are_multiplied_by_marginals_and_no_candidate_is_lost():
    prior = np.array([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]])
    marginals = np.array([[0.6, 0.2, 0.2], [0.9, 0.1, 0.0]])
    found = updated(prior, marginals)
    np.testing.assert_allclose(found, [[0.75, 0.25, 0], [0, 1, 0]], atol=1e-9)
    assert found[1, 2] > 0
    assert found[0, 2] == found[1, 0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_soft_targets_are_all_well_formed_sequences_weighted_by_their_priors(seed):
    rng = np.random.default_rng(seed)
    inputs = inputs_of(oracle.random_items(rng, BIO, n_items=5, skip=0.0, absent=0.0))
    prior = candidates(inputs) * rng.random((inputs.crowd.n_tokens, 5))
    prior /= prior.sum(axis=1, keepdims=True)
    method, offsets = MultiCrf(), inputs.crowd.offsets
    sums = TokenTargets.zeros(offsets, 5)
    believed = method._scores(inputs, prior)
    nothing = TrainingSequences.of_truth(np.full(inputs.crowd.n_tokens, -1, np.int16), offsets)
    nothing.add_filled(sums, np.ones(inputs.crowd.n_items), believed)
    probs, steps = np.zeros_like(sums.probs), np.zeros_like(sums.steps)
    with np.errstate(divide="ignore"):
        masks = [np.log(m) for m in (inputs.masks.start, inputs.masks.step, inputs.masks.end)]
        for begin, stop in pairwise(offsets):
            paths = oracle.legal_paths(BIO, stop - begin)
            every = oracle.enumerate_item(np.log(prior[begin:stop]), *masks, paths)
            probs[begin:stop] = every.marginals
            steps += every.steps
    np.testing.assert_allclose(sums.probs, probs, atol=1e-9)
    np.testing.assert_allclose(sums.steps, steps, atol=1e-9)


def test_max_learns_soft_labels_first_where_all_begin_alike_and_then_one_sequence():
    soft_first, max_first = MultiCrf(begin="uniform"), MultiCrfMax(begin="uniform")
    items = oracle.random_items(np.random.default_rng(4), BIO, n_items=6, skip=0.0)
    inputs = inputs_of(items)
    states = [m._round(inputs, m._begin(inputs, State(), None)) for m in (soft_first, max_first)]
    np.testing.assert_array_equal(states[0].weights.vector, states[1].weights.vector)
    soft, hard = (m._round(inputs, states[0]) for m in (soft_first, max_first))
    np.testing.assert_array_equal(soft.arrays["prior"], hard.arrays["prior"])
    believed = MultiCrfMax()._scores(inputs, hard.arrays["prior"])
    codes = MultiCrfMax()._likeliest(inputs, believed).codes
    for begin, stop in pairwise(inputs.crowd.offsets):
        paths = oracle.legal_paths(BIO, stop - begin)
        score = sum(believed.unary[begin + t, column] for t, column in enumerate(paths.T))
        assert tuple(codes[begin:stop]) == tuple(paths[score.argmax()])
    assert not np.array_equal(soft.weights.vector, hard.weights.vector)


@pytest.mark.parametrize("method", ["multicrf", "multicrf-max"])
def test_items_whose_candidates_make_no_sequence_teach_nothing_and_are_counted(method):
    items = [{0: [1, 3], 1: [1, 3]}, {0: [0, -1], 1: [-1, 3]}]  # O, and an I that follows nothing
    result = aggregate(oracle.crowd_of(BIO, items), method)
    assert any(note.startswith("1 items were not trained on") for note in result.notes)
    alone = aggregate(oracle.crowd_of(BIO, items[:1]), method)
    assert result.tags[0] == alone.tags[0] == ["B-X", "I-X"]


@pytest.mark.parametrize("method", ["multicrf", "multicrf-max"])
def test_who_gave_a_label_does_not_matter(method, crowd):
    options = {"templates": FEW, "max_iter": 2, "steps": 10}
    one = aggregate(crowd, method, **options)
    renamed = goldspan.crowd.Crowd(
        crowd.item_ids, crowd.tokens, crowd.worker_ids.take(list(range(7))[::-1]), crowd.tagset,
        crowd.answers, groups=crowd.groups,
    )  # fmt: skip
    two = aggregate(renamed, method, **options)
    np.testing.assert_array_equal(one.token_probs, two.token_probs)


def test_a_run_is_resumed_from_its_checkpoint(crowd, tmp_path):
    options = {"templates": FEW, "steps": 10, "tol": 0.0}
    whole = aggregate(crowd, "multicrf", **options, max_iter=3)
    place = FileCheckpoint(tmp_path / "state.npz")

    def stop(done, *_rest):
        if done == 2:
            raise KeyboardInterrupt

    options |= {"max_iter": 3, "checkpoint": place}
    assert aggregate(crowd, "multicrf", **options, progress=stop).stop_reason == "interrupted"
    result = aggregate(crowd, "multicrf", **options)
    np.testing.assert_allclose(result.trace, whole.trace, rtol=1e-12)


def test_it_stops_when_priors_stand_still(crowd):
    result = aggregate(crowd, "multicrf", templates=FEW, steps=20, tol=0.05)
    assert (result.converged, result.stop_reason) == (True, "priors have converged")
    assert 2 <= len(result.trace) < 10
