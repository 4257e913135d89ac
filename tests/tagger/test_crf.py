"""Warm starts, early stopping and progress of the CRF."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError, NotFittedError
from goldspan.protocols import Serial
from goldspan.tagger import CRF, HMM
from goldspan.tagger.base import carry
from tagger.corpora import random_items

X, Y = random_items(80)
OPTIONS = {"templates": ["word", "kind[-1]|word"], "tol": 1e-12}


def test_a_warm_start_at_the_optimum_stays_there():
    cold = CRF(**OPTIONS).fit(X, Y)
    warm = CRF(**{**OPTIONS, "tol": 1e-6}).fit(X, Y, start=cold)
    assert warm.trace_[0] == pytest.approx(cold.trace_[-1], rel=1e-12)
    assert len(warm.trace_) < len(cold.trace_) / 2


@pytest.mark.parametrize("kind", ["templates", "dicts"])
def test_weights_of_known_features_and_tags_are_taken_over(kind):
    more = ["new", "w1"], ["B-C", "O"]
    items, tags = [*X, more[0]], [*Y, more[1]]
    if kind == "dicts":
        first, second = ([[{"w": w} for w in ws] for ws in items_] for items_ in (X, items))
    else:
        first, second = X, items
    old = CRF(**OPTIONS).fit(first, Y)
    other = {**OPTIONS, "templates": ["kind[-1]|word", "suffix1", "word"]}
    new = CRF(**other, max_iter=1).fit(second, tags)
    w = carry(old.weights_, old.features_, old.codec_, new.features_, new.codec_)
    place = [new.codec_.index[tag] for tag in old.codec_.tags]
    known = {old.features_.name(n): n for n in range(old.features_.n_features)}
    for n in range(new.features_.n_features):
        name = new.features_.name(n)
        expected = old.weights_.state[known[name]] if name in known else 0.0
        np.testing.assert_array_equal(w.state[n][place], expected)
    np.testing.assert_array_equal(w.step[np.ix_(place, place)], old.weights_.step)
    assert w.start[new.codec_.index["B-C"]] == 0
    assert set(known) <= {new.features_.name(n) for n in range(new.features_.n_features)}


def test_weights_are_taken_over_only_between_features_of_a_kind():
    old = CRF(**OPTIONS).fit(X, Y)
    with pytest.raises(InputError, match="same kind of features"):
        CRF().fit([[{"a": 1}]], [["O"]], start=old)


def test_training_stops_when_the_held_out_set_gets_no_better():
    validation = random_items(80, seed=5)
    watched = CRF(c2=1e-4, templates="default", tol=0.0, patience=1, max_iter=300)
    watched.fit(X, Y, validation=validation)
    free = CRF(c2=1e-4, templates="default", tol=0.0, max_iter=300).fit(X, Y)
    assert watched.stop_reason_ == "validation"
    assert not watched.converged_
    assert len(watched.trace_) < len(free.trace_)
    assert watched.score(*validation) >= free.score(*validation)


def test_without_a_look_at_the_held_out_set_the_last_weights_count():
    short = CRF(**OPTIONS, max_iter=5)
    watched = CRF(**OPTIONS, max_iter=5).fit(X, Y, validation=(X, Y))
    np.testing.assert_array_equal(watched.weights_.vector, short.fit(X, Y).weights_.vector)


def test_progress_hears_of_every_step():
    heard = []
    crf = CRF(**OPTIONS, max_iter=7).fit(X, Y, progress=lambda *args: heard.append(args))
    assert [args[:3] for args in heard] == [(n, 7, crf.trace_[n]) for n in range(1, 8)]
    assert heard[-1][3] == 0
    assert crf.stop_reason_ == "max_iter"


def test_without_bias_the_first_and_last_tag_have_no_weights():
    start = CRF(**OPTIONS).fit(X, Y)
    crf = CRF(**OPTIONS, bias=False).fit(X, Y, start=start)
    assert not crf.weights_.start.any()
    assert not crf.weights_.end.any()
    assert start.weights_.end.any()


def interrupt_at(step):
    def progress(done, *_):
        if done == step:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_keeps_what_is_trained_so_far():
    crf = CRF(**OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, progress=interrupt_at(4))
    same = CRF(**OPTIONS, max_iter=4).fit(X, Y)
    assert (crf.stop_reason_, crf.converged_, crf.trace_) == ("interrupted", False, same.trace_)
    np.testing.assert_array_equal(crf.weights_.vector, same.weights_.vector)
    assert crf.predict(X) == same.predict(X)


def test_ctrl_c_within_an_evaluation_keeps_the_last_step():
    class Interrupted(Serial):
        calls = 0

        def map(self, fn, shards, params):
            self.calls += 1
            if self.calls == 10:
                raise KeyboardInterrupt
            return super().map(fn, shards, params)

    crf = CRF(**OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, runner=Interrupted())
    same = CRF(**OPTIONS, max_iter=len(crf.trace_) - 1).fit(X, Y)
    np.testing.assert_array_equal(crf.weights_.vector, same.weights_.vector)


def test_ctrl_c_before_the_first_step_leaves_no_tagger():
    class Interrupted(Serial):
        def map(self, *_):
            raise KeyboardInterrupt

    crf = CRF(**OPTIONS).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X[:5], Y[:5], runner=Interrupted())
    with pytest.raises(NotFittedError):  # the weights of another training set would not fit
        crf.predict(X)


def test_ctrl_c_between_rounds_of_em_keeps_their_tables():
    tags = [[None, *tags[1:]] for tags in Y]
    hmm = HMM(tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        hmm.fit(X, tags, progress=interrupt_at(3))
    same = HMM(tol=0.0, max_iter=3).fit(X, tags)
    assert (hmm.stop_reason_, hmm.converged_) == ("interrupted", False)
    np.testing.assert_array_equal(hmm.weights_.vector, same.weights_.vector)
