"""CRF-MA: exact EM where it is asked for, the paper's steps elsewhere, and who is believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import aggregate, get_aggregator
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.crf import CrfMa
from goldspan.aggregation.crf.rounds import State, expectation, prepare
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.runners import FileCheckpoint, Threads
from goldspan.spans import Codec, Tagged, find_errors

FEW = ("lower", "suffix3", "is_title", "lower[-1]")
QUICK = {"templates": FEW, "max_iter": 3, "steps": 15}


@pytest.fixture(scope="module")
def fitted(crowd):
    return CrfMa(templates="rodrigues").fit(crowd)


@pytest.fixture(scope="module")
def once(crowd):
    """The crowd with one answer per sentence."""
    rng = np.random.default_rng(1)
    view = crowd.by_item
    chosen = np.sort([int(rng.choice(view[item])) for item in range(crowd.n_items)])
    return replace(crowd, answers=crowd.latest.take(chosen))


def with_twin(crowd, name):
    """Add a worker who gives the answers of another."""
    k = crowd.worker_index(name)
    answers, theirs = crowd.latest, crowd.latest.take(crowd.latest.worker == k)
    both = goldspan.crowd.Answers(
        np.concatenate([answers.item, theirs.item]),
        np.concatenate([answers.worker, np.full(len(theirs), crowd.n_workers, np.int32)]),
        np.concatenate([answers.offset, answers.offset[-1] + theirs.offset[1:]]),
        np.concatenate([answers.codes, theirs.codes]),
        np.concatenate([answers.attempt, theirs.attempt]),
    )
    ids = [*crowd.worker_ids.to_pylist(), "twin"]
    return replace(crowd, answers=both, worker_ids=type(crowd.worker_ids).from_pandas(ids))


# The result


def test_the_result_is_well_formed_with_probabilities_and_a_tagger(crowd, fitted):
    result = fitted.result_
    assert not len(find_errors(Tagged(result.codes, crowd.offsets), crowd.tagset))
    np.testing.assert_allclose(result.token_probs.sum(axis=1), 1, atol=1e-5)
    items = [tokens.as_py() for tokens in crowd.tokens]
    groups = crowd.groups.to_pylist()
    text = goldspan.tagger.Text.of(items, groups)
    assert result.tagger.predict(text) == result.tags
    np.testing.assert_array_equal(fitted.predict(crowd).token_probs, result.token_probs)


def test_the_course_has_a_row_per_round_and_ends_in_the_table_of_workers(crowd, fitted):
    trace, result = fitted.result_.memory, fitted.result_
    shape = (len(result.trace), crowd.n_workers)
    assert trace.gamma.shape == trace.pi.shape == shape
    assert trace.expectation.tolist() == list(result.trace)
    assert trace.objective.shape == (len(result.trace),)
    np.testing.assert_allclose(trace.gamma.sum(axis=1), 1)
    np.testing.assert_allclose(trace.pi.sum(axis=1), 1)
    np.testing.assert_array_equal(trace.gamma[0], trace.begin)
    assert result.workers["reliability"].to_pylist() == trace.pi[-1].tolist()
    assert result.workers["gamma"].to_pylist() == trace.gamma[-1].tolist()


def test_a_spammer_gets_a_low_reliability_and_the_careful_worker_the_highest(crowd, fitted):
    pi = dict(zip(crowd.worker_ids.to_pylist(), fitted.result_.memory.pi[-1], strict=True))
    assert max(pi, key=pi.get) == "ana"
    assert pi["gus"] < 0.01
    assert min(pi, key=pi.get) == "gus"


def test_spans_can_be_asked_for_their_alternatives_and_be_calibrated(crowd, fitted):
    result = fitted.result_
    found = [span for item in range(20) for span in result.alternatives(item)]
    assert any(0.02 < span.confidence < 0.98 for span in found)
    calibrated = goldspan.aggregation.calibrate(result, crowd)
    assert calibrated.params["temperature"] != pytest.approx(1.0, abs=0.05)
    assert not np.allclose(calibrated.token_probs, result.token_probs, atol=0.01)


def test_mbr_decoding_changes_labels_only(crowd):
    best = aggregate(crowd, "crf-ma", **QUICK)
    mbr = aggregate(crowd, "crf-ma", **QUICK, decode="mbr")
    np.testing.assert_array_equal(best.token_probs, mbr.token_probs)
    assert not np.array_equal(best.codes, mbr.codes)
    assert not len(find_errors(Tagged(mbr.codes, crowd.offsets), crowd.tagset))


# What EM promises


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_with_the_posterior_the_objective_of_eq_9_never_falls(alpha, seed):
    codec = Codec.from_types(["X", "Y"], "BIO")
    rng = np.random.default_rng(seed)
    crowd = oracle.crowd_of(codec, oracle.random_items(rng, codec, n_items=12, n_workers=4))
    result = aggregate(
        crowd, "crf-ma", reliability="posterior", normalise="ratio", alpha=alpha, begin="random",
        random_state=seed, steps=150, max_iter=8, tol=0.0, c2=0.3,
    )  # fmt: skip
    objective = result.memory.objective
    assert len(objective) > 2
    assert (np.diff(objective) > -1e-7 * np.abs(objective[:-1])).all()
    assert objective[-1] > objective[0] + 1e-3


@pytest.mark.parametrize("model", ["crf", "hmm"])
def test_the_objective_is_eq_9_over_all_paths_with_the_log_priors(model):
    codec = Codec.from_types(["X"], "BIO")
    items = oracle.random_items(np.random.default_rng(5), codec, n_items=4, n_workers=3)
    crowd = oracle.crowd_of(codec, items)
    options = {"normalise": "ratio", "alpha": 2.0, "c2": 0.2, "max_iter": 3, "tol": 0.0}
    result = aggregate(crowd, "crf-ma", **options, model=model, templates=["lower"])
    scores, tagger = result.tagger.log_potentials([t.as_py() for t in crowd.tokens]), result.tagger
    pi, parts = result.memory.pi[-1], np.log(result.memory.pi[-1])
    for a in range(len(crowd.latest)):
        item, worker = int(crowd.latest.item[a]), int(crowd.latest.worker[a])
        begin, stop = crowd.offsets[item : item + 2]
        paths = oracle.legal_paths(codec, stop - begin)
        every = oracle.enumerate_item(
            scores.unary[begin:stop], scores.start, scores.step, scores.end, paths
        )
        own = _repaired(crowd, a)
        agree = ((paths == own) | (own < 0)).all(axis=1)
        given = (own >= 0).sum()
        if given:
            parts[worker] += np.log(every.p[agree].sum()) + given * np.log(len(codec.tags))
    weights = tagger.weights_.vector
    log_prior = np.log(pi * len(pi)).sum()  # less that of the mode, where all are alike
    expected = np.log(np.exp(parts).sum()) + log_prior
    expected -= 0.2 * weights @ weights if model == "crf" else 0  # an HMM's are probabilities
    assert result.memory.objective[-1] == pytest.approx(expected, abs=1e-9)


def _repaired(crowd: Crowd, answer: int):
    from goldspan.aggregation.crf.rounds import TrainingSequences
    from goldspan.tagger.crf import Masks

    sequences, _ = TrainingSequences.of_crowd(crowd, Masks.of(crowd.tagset, hard=True))
    return sequences.codes[sequences.offset[answer] : sequences.offset[answer + 1]]


@pytest.mark.parametrize("normalise", ["token", "ratio", "none"])
def test_the_weights_of_the_crf_never_lower_the_expectation(crowd, normalise):
    method = CrfMa(normalise=normalise, **QUICK)
    inputs = prepare(crowd, FitContext(), FEW, 1)
    state = method._begin(inputs, State(), None)
    for _ in range(2):
        before = state
        state = method._round(inputs, state)
        if before.weights is None:
            continue
        gamma, pi = state.arrays["gamma"][-1], before.arrays["pi"][-1]
        values = []
        for weights in (before.weights, state.weights):
            totals = method._totals(inputs, inputs.scores(weights))
            penalty = method.c2 * weights.vector @ weights.vector
            values.append(expectation(gamma, pi, totals) - penalty)
        assert values[1] >= values[0]


def test_a_twin_shares_the_weight_of_a_worker_and_changes_nothing_else(crowd):
    options = {**QUICK, "reliability": "posterior", "normalise": "ratio", "tol": 0.0}
    both = with_twin(crowd, "ana")
    alone, shared = (CrfMa(**options), CrfMa(**options))
    k = crowd.worker_index("ana")
    pi = np.full(crowd.n_workers, 1 / crowd.n_workers)
    twins = np.append(pi, pi[k] / 2)
    twins[k] /= 2
    states = []
    for method, data, begin in ((alone, crowd, pi), (shared, both, twins)):
        inputs = prepare(data, FitContext(), FEW, 1)
        state = State(arrays={"pi": begin[None]})
        for _ in range(2):
            state = method._round(inputs, state)
        states.append(state)
    one, two = states
    np.testing.assert_allclose(two.weights.vector, one.weights.vector, atol=1e-6)
    np.testing.assert_allclose(two.arrays["pi"][-1][[k, -1]].sum(), one.arrays["pi"][-1][k])
    np.testing.assert_allclose(two.trace, one.trace, rtol=1e-3)


# Workers who answered little, or nothing twice


def test_it_learns_reliabilities_from_one_answer_per_sentence(once):
    assert np.bincount(once.latest.item).max() == 1
    result = aggregate(once, "crf-ma", templates="rodrigues", c2=0.2)
    ids = once.worker_ids.to_pylist()
    pi = dict(zip(ids, result.memory.pi[-1], strict=True))
    assert pi["gus"] < 0.1 / once.n_workers
    # The majority of one answer is that answer: at first all seem right who write well-formed tags.
    assert np.unique(result.memory.begin.round(12), return_counts=True)[1].max() >= 5
    assert max(pi.values()) > 1.2 / once.n_workers
    conc = goldspan.score(once, aggregate(once, "crf-conc", templates="rodrigues", c2=0.2)).f1
    assert goldspan.score(once, result).f1 > conc


def test_none_believes_only_whoever_labelled_least(crowd):
    few = crowd.latest.take((crowd.latest.worker != 4) | (crowd.latest.item < 10))
    result = aggregate(replace(crowd, answers=few), "crf-ma", **QUICK, normalise="none")
    assert result.memory.gamma[-1].argmax() == 4
    assert result.memory.gamma[-1].max() > 0.99
    soft = aggregate(replace(crowd, answers=few), "crf-ma", **QUICK)
    assert soft.memory.gamma[-1].max() < 0.5


def test_workers_with_few_answers_can_be_left_out(crowd):
    result = aggregate(crowd, "crf-ma", **QUICK, min_answers=80)
    answers = result.workers["answers"].to_numpy()
    np.testing.assert_array_equal(result.memory.pi[-1] == 0, answers < 80)
    assert "2 workers are left out: too few answers" in result.notes
    with pytest.raises(InputError, match="no worker has 1000 answers"):
        aggregate(crowd, "crf-ma", min_answers=1000)


def test_items_without_answers_are_labelled_by_their_words_alone(crowd):
    few = replace(crowd, answers=crowd.latest.take(crowd.latest.item >= 3))
    method = get_aggregator("crf-ma", **QUICK).fit(few)
    result, end = method.result_, int(crowd.offsets[3])
    assert (result.codes >= 0).all()
    assert "3 items without answers are labelled by their words alone" in result.notes
    np.testing.assert_array_equal(method.predict(few).codes[:end], result.codes[:end])


# Known truth


def test_known_truth_stays_and_helps(crowd):
    half = np.where(
        np.repeat(np.arange(crowd.n_items) < 75, np.diff(crowd.offsets)), crowd.gold, -1
    )
    known = crowd.with_gold(half.astype(np.int16))
    result = aggregate(crowd, "crf-ma", **QUICK, gold=known)
    np.testing.assert_array_equal(result.codes[half >= 0], half[half >= 0])
    rest = crowd.select_items(np.arange(75, 150))
    plain = aggregate(crowd, "crf-ma", **QUICK)
    better, worse = (
        goldspan.score(rest, dict(list(r.tagged_by_id().items())[75:])).f1 for r in (result, plain)
    )
    assert better > worse
    assert f"{int((half >= 0).sum())} tokens of known truth" in result.notes


def test_truth_of_some_tokens_of_an_item_stays_too(crowd):
    known = np.full(crowd.n_tokens, -1, np.int16)
    known[0] = crowd.tagset.index["B-MISC"]
    result = aggregate(crowd, "crf-ma", **QUICK, gold=crowd.with_gold(known))
    assert result.tags[0][0] == "B-MISC"
    assert result.token_probs[0, known[0]] == 1.0


# Going on


def test_a_warm_start_begins_where_the_earlier_fit_ended(crowd, fitted):
    earlier = fitted.result_
    again = aggregate(crowd, "crf-ma", templates="rodrigues", max_iter=1, steps=20, start=earlier)
    np.testing.assert_allclose(again.memory.begin, earlier.memory.pi[-1])
    assert again.trace[0] > earlier.trace[0]
    with pytest.raises(InputError, match="start must be a result with a CRF"):
        aggregate(crowd, "crf-ma", start=aggregate(crowd, "ds"))


def test_a_run_is_resumed_from_its_checkpoint(crowd, tmp_path):
    whole = aggregate(crowd, "crf-ma", **QUICK, tol=0.0)
    place = FileCheckpoint(tmp_path / "state.npz")
    seen = []

    def stop(done, *_rest):
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    broken = aggregate(crowd, "crf-ma", **QUICK, tol=0.0, checkpoint=place, progress=stop)
    assert (broken.stop_reason, broken.converged) == ("interrupted", False)
    assert len(broken.trace) == 2
    result = aggregate(crowd, "crf-ma", **QUICK, tol=0.0, checkpoint=place, progress=stop)
    assert seen == [1, 2, 2, 3]
    np.testing.assert_allclose(result.trace, whole.trace, rtol=1e-12)
    np.testing.assert_array_equal(result.codes, whole.codes)
    with pytest.raises(InputError, match="another run"):
        aggregate(crowd, "crf-ma", **QUICK, c2=0.3, checkpoint=place)


# The real crowd


@pytest.mark.realdata
def test_on_a_part_of_the_real_crowd_it_beats_votes_and_all_answers_alike(data):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz").select_items(np.arange(1000))
    options = {"templates": "rodrigues", "max_iter": 2, "steps": 30, "runner": Threads(2)}
    f1 = goldspan.score(crowd, aggregate(crowd, "crf-ma", **options)).f1
    assert f1 > goldspan.score(crowd, aggregate(crowd, "mv-token")).f1 + 0.05
    assert f1 > goldspan.score(crowd, aggregate(crowd, "crf-conc", **options)).f1 + 0.03
