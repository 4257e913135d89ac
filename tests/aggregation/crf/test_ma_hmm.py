"""CRF-MA with a hidden Markov model in the place of the CRF (Rodrigues et al. 2013, section 5)."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import aggregate, get_aggregator
from goldspan.aggregation.crf import CrfMa
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import measure_workers
from goldspan.spans import Codec
from goldspan.tagger import CRF, HMM, load_tagger

BIO = Codec.from_types(["X", "Y"], "BIO")
OPTIONS = {"model": "hmm", "templates": ["lower"]}


@pytest.fixture(scope="module")
def small():
    items = oracle.random_items(np.random.default_rng(3), BIO, n_items=6, n_workers=3, skip=0.0)
    return oracle.crowd_of(BIO, [_legal(item) for item in items])


def _legal(item):
    """Write the answers of an item well-formed: an I that opens a span is O."""
    rng = np.random.default_rng(sum(map(len, item.values())))
    paths = oracle.legal_paths(BIO, len(next(iter(item.values()))))
    return {worker: paths[rng.integers(len(paths))].tolist() for worker in item}


def answers_of(crowd):
    """Yield words, tags and worker of every answer."""
    answers, words = crowd.latest, crowd.tokens_list
    for n, (item, worker) in enumerate(zip(answers.item, answers.worker, strict=True)):
        codes = answers.codes[answers.offset[n] : answers.offset[n + 1]]
        yield words[item], [crowd.tagset.tags[code] for code in codes], int(worker)


def test_a_round_counts_every_answer_with_its_workers_weight(small):
    found = CrfMa(**OPTIONS, max_iter=1).fit(small).result_
    words, tags, workers = zip(*answers_of(small), strict=True)
    weight = found.memory.begin[list(workers)]
    wanted = HMM(templates=["lower"]).fit(words, tags, weight=weight)
    here, there = (tagger.log_potentials(small.tokens_list) for tagger in (found.tagger, wanted))
    for name in ("unary", "start", "step", "end"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), atol=1e-9)


def test_the_weights_are_those_of_all_paths_of_the_hmm(small):
    rounds = [CrfMa(**OPTIONS, normalise="ratio", max_iter=n, tol=0).fit(small) for n in (1, 2)]
    first, second = (method.result_ for method in rounds)
    scores = first.tagger.log_potentials(small.tokens_list)
    parts = np.log(np.maximum(first.memory.pi[-1], 1e-12))
    answers = small.latest
    for n, (item, worker) in enumerate(zip(answers.item, answers.worker, strict=True)):
        begin, stop = small.offsets[item : item + 2]
        paths = oracle.legal_paths(BIO, stop - begin)
        every = oracle.enumerate_item(
            scores.unary[begin:stop], scores.start, scores.step, scores.end, paths
        )
        own = answers.codes[answers.offset[n] : answers.offset[n + 1]]
        parts[worker] += np.log(every.p[(paths == own).all(axis=1)].sum())
        parts[worker] += len(own) * np.log(len(BIO.tags))
    gamma = np.exp(parts - parts.max())
    np.testing.assert_allclose(second.memory.gamma[-1], gamma / gamma.sum(), atol=1e-9)


def test_it_knows_who_is_good_and_labels_text(crowd, tmp_path):
    result = aggregate(crowd, "crf-ma", model="hmm", templates="hmm")
    true = [one.f1 for one in measure_workers(crowd)]
    assert goldspan.score(crowd, result).f1 > np.mean(true) + 0.1
    assert np.corrcoef(true, result.memory.pi[-1])[0, 1] > 0.8
    assert isinstance(result.tagger, HMM)
    result.tagger.save(tmp_path / "ner.goldspan")
    words = crowd.tokens_list[:5]
    assert load_tagger(tmp_path / "ner.goldspan").predict(words) == result.tagger.predict(words)


def test_it_labels_other_items_and_goes_on_from_its_own_result_only(crowd):
    options = {"model": "hmm", "templates": "hmm"}
    method = get_aggregator("crf-ma", **options)
    result = method.fit(crowd).result_
    assert method.predict(crowd).tags == result.tags
    again = get_aggregator("crf-ma", **options, max_iter=1).fit(crowd, start=result).result_
    np.testing.assert_allclose(again.memory.begin, result.memory.pi[-1])
    with pytest.raises(InputError, match="start must be a result with a CRF"):
        get_aggregator("crf-ma", max_iter=1, steps=1).fit(crowd, start=result)
    by_crf = aggregate(crowd, "crf-ma", max_iter=1, steps=1)
    assert isinstance(by_crf.tagger, CRF)
    with pytest.raises(InputError, match="start must be a result with an HMM"):
        get_aggregator("crf-ma", **options).fit(crowd, start=by_crf)


def test_another_model_is_refused():
    with pytest.raises(UnknownNameError, match="value of model"):
        CrfMa(model="rnn")
