"""Every number of the engine against a sum over all J^T truths (see `oracle`)."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation.bsc.engine import Vocabulary
from goldspan.aggregation.bsc.family import BscSeq
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged, find_spans, validate

CODECS = {
    "BIO1": Codec.from_types(["X"], "BIO"),
    "BIO2": Codec.from_types(["X", "Y"], "BIO"),
    "IOBES": Codec.from_types(["X"], "IOBES"),
    "IOB2": Codec.from_types(["X", "Y"], "IOB"),
    "BMEWO": Codec.from_types(["X"], "BMEWO"),
    "PLAIN": Codec.from_types(["a", "b", "c"], "PLAIN"),
}
every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
every_model = pytest.mark.parametrize("model", oracle.MODELS)


def gold_codes(rng, codec, lengths, share):
    """Draw known truth: some items whole, some in part, some not at all."""
    rows = []
    for length in lengths:
        paths = oracle.legal_paths(codec, length)
        path = paths[rng.integers(len(paths))].copy()
        kind = rng.integers(3)
        path[rng.random(length) < (0, share, 1)[kind]] = -1
        rows.append(path.tolist())
    return rows


def compare(dense, crowd, result, found):
    """Compare a result with the enumerated items."""
    codec = crowd.tagset
    np.testing.assert_allclose(result.trace, dense.trace[: len(result.trace)], rtol=0, atol=1e-9)
    last = result.posterior.marginals(least=1e-12)
    codes = np.concatenate([one.paths[one.log_p.argmax()] for one in found]).astype(np.int16)
    spans = find_spans(Tagged(codes, crowd.offsets), codec)
    paths, _ = result.posterior.confidences(codes, spans, crowd.offsets, result.token_probs)
    for n, one in enumerate(found):
        tokens = slice(*crowd.offsets[n : n + 2])
        np.testing.assert_allclose(last.probs[tokens], one.marginals, rtol=0, atol=1e-7)
        assert last.entropy[n] == pytest.approx(one.entropy, abs=1e-9)
        assert one.log_of(last.codes[tokens]) == pytest.approx(one.log_p.max(), abs=1e-9)
        assert paths[n] == pytest.approx(np.exp(one.log_p.max()), abs=1e-9)
        own = last.item == n
        kinds = [codec.types[k] for k in last.kind[own]]
        keys = zip(last.begin[own].tolist(), last.stop[own].tolist(), kinds, strict=True)
        masses = dict(zip(keys, last.mass[own].tolist(), strict=True))
        wanted = one.spans(codec)
        if codec.rules.is_plain:  # labels are no spans: they are not listed
            assert not masses
        for key in masses.keys() | wanted.keys() if not codec.rules.is_plain else ():
            assert masses.get(key, 0.0) == pytest.approx(wanted.get(key, 0.0), abs=1e-9)
        listed = {
            (a.start, a.end, a.type): a.confidence for a in result.posterior.alternatives(n, 1e-12)
        }
        assert listed == pytest.approx(masses, abs=1e-12)
        given = {
            (int(a - tokens.start), int(b - tokens.start), codec.types[k]): p
            for a, b, k, i, p in zip(
                result.span_array.start, result.span_array.end, result.span_array.type,
                result.span_array.item, result.span_confidence, strict=True,
            )
            if i == n
        }  # fmt: skip
        for key, p in given.items():
            assert p == pytest.approx(wanted[key], abs=1e-6)


@pytest.mark.parametrize("name", [name for name in CODECS if name != "PLAIN"])
def test_the_paths_that_the_oracle_sums_over_are_the_well_formed_ones(name):
    codec = CODECS[name]
    legal = {tuple(path) for path in oracle.legal_paths(codec, 3).tolist()}
    for path in oracle.legal_paths(codec, 3, masked=False).tolist():
        well_formed = not validate([codec.tags[c] for c in path], codec.encoding)
        assert (tuple(path) in legal) == well_formed


@pytest.mark.compiles
@every_codec
@every_model
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_run_equals_the_same_run_by_enumeration(codec, model, seed):
    rng = np.random.default_rng(seed)
    longest = 5 if len(codec.tags) < 5 else 4
    items = oracle.random_items(rng, codec, longest=longest)
    gold = gold_codes(rng, codec, [len(next(iter(i.values()))) for i in items], 0.5)
    if seed == 0:
        gold = None
    dense = oracle.DenseBsc(codec, items, 3, model, gold=gold)
    crowd = oracle.crowd_of(codec, items, workers=3)
    truth = None
    if gold:
        truth = crowd.with_gold(np.concatenate(gold).astype(np.int16))
    result = goldspan.aggregate(crowd, f"bsc-{model}", gold=truth, max_iter=4, tol=0)
    compare(dense, crowd, result, dense.run(len(result.trace)))


@every_codec
@pytest.mark.parametrize("at_start", ["own", "outside"])
@pytest.mark.parametrize("after_skip", ["own", "outside"])
def test_previous_labels_at_starts_and_after_skips_equal_the_enumeration(
    codec, at_start, after_skip
):
    rng = np.random.default_rng(7)
    items = oracle.random_items(rng, codec, skip=0.4, longest=4)
    dense = oracle.DenseBsc(codec, items, 3, "seq", at_start=at_start, after_skip=after_skip)
    crowd = oracle.crowd_of(codec, items, workers=3)
    method = BscSeq(at_start=at_start, after_skip=after_skip, max_iter=3, tol=0)
    result = method.fit(crowd).result_
    compare(dense, crowd, result, dense.run(3))


@every_codec
@pytest.mark.parametrize("after_skip", ["own", "outside"])
def test_without_forbidden_labels_it_equals_the_enumeration_without_them(codec, after_skip):
    rng = np.random.default_rng(5)
    items = oracle.random_items(rng, codec, skip=0.2, longest=4)
    chosen = {"after_skip": after_skip, "strict": True, "forbidden": 1e-12}
    dense = oracle.DenseBsc(codec, items, 3, "seq", **chosen)
    crowd = oracle.crowd_of(codec, items, workers=3)
    method = BscSeq(forbidden="zero", after_skip=after_skip, max_iter=3, tol=0)
    result = method.fit(crowd).result_
    compare(dense, crowd, result, dense.run(3))


def _seq(*tags, **params):
    """Aggregate items of three words with text, each answered by two workers."""
    lines = ["item\ttoken\ta\tb"]
    for n, pair in enumerate(tags):
        rows = zip("xyz", *(text.split() for text in pair), strict=True)
        lines += [f"s{n}\t" + "\t".join(row) for row in rows]
        lines.append("")
    crowd = goldspan.read_crowd("\n".join(lines).encode(), format="wide")
    return goldspan.aggregate(crowd, "bsc-seq+words", **params)


def test_a_label_that_may_not_follow_says_nothing_if_it_never_happens():
    others = [("B-PER O B-LOC", "B-PER O O")] * 5
    found = {}
    for forbidden in ("zero", 0.1):
        pair = [
            _seq(("O O I-PER", "O O O"), *others, forbidden=forbidden),
            _seq(("O O I-LOC", "O O O"), *others, forbidden=forbidden),
        ]
        found[forbidden] = np.array_equal(pair[0].token_probs, pair[1].token_probs)
        is_told = "1 labels that may not follow the one before do not count" in pair[0].notes
        assert is_told == (forbidden == "zero")
    assert found == {"zero": True, 0.1: False}


def test_results_with_and_without_forbidden_labels_do_not_mix():
    answers = [("O I-PER O", "B-PER I-PER O")] * 3
    strict, other = _seq(*answers, forbidden="zero"), _seq(*answers)
    again = _seq(*answers, forbidden="zero", start=strict)
    assert np.isfinite(again.trace).all()
    for forbidden, start in (("zero", other), (0.1, strict)):
        with pytest.raises(InputError, match="forbidden"):
            _seq(*answers, forbidden=forbidden, start=start)
        with pytest.raises(InputError, match="forbidden"):
            _seq(*answers, forbidden=forbidden, history=start)


@pytest.mark.compiles
@every_model
@pytest.mark.parametrize(
    ("off", "bonus", "forbidden", "truth_prior"),
    [(0.1, 0.0, 0.001, 0.01), (3.0, 50.0, 1.0, 5.0), (0.5, 2.0, 0.01, 0.1)],
)
def test_other_priors_equal_the_enumeration(model, off, bonus, forbidden, truth_prior):
    codec, rng = CODECS["BIO2"], np.random.default_rng(3)
    items = oracle.random_items(rng, codec)
    chosen = {"off": off, "bonus": bonus, "forbidden": forbidden, "truth_prior": truth_prior}
    dense = oracle.DenseBsc(codec, items, 3, model, **chosen)
    crowd = oracle.crowd_of(codec, items, workers=3)
    result = goldspan.aggregate(
        crowd, f"bsc-{model}", alpha0=off, epsilon0=bonus, forbidden=forbidden,
        truth_prior=truth_prior, max_iter=5, tol=0,
    )  # fmt: skip
    compare(dense, crowd, result, dense.run(len(result.trace)))


@every_model
def test_words_equal_the_enumeration(model):
    codec, rng = CODECS["BIO1"], np.random.default_rng(5)
    items = oracle.random_items(rng, codec, n_items=4)
    lengths = [len(next(iter(item.values()))) for item in items]
    words = [rng.integers(3, size=length).tolist() for length in lengths]
    tokens = [[f"word{w}" for w in row] for row in words]
    used = sorted({w for row in words for w in row})
    numbers = [[used.index(w) for w in row] for row in words]
    crowd = oracle.crowd_of(codec, items, workers=3, tokens=tokens)
    assert len(Vocabulary.of(crowd, 0.5)) == len(used) + 1
    dense = oracle.DenseBsc(
        codec, items, 3, model, words=numbers, n_words=len(used) + 1, word_prior=0.5
    )
    result = goldspan.aggregate(crowd, f"bsc-{model}+words", word_prior=0.5, max_iter=4, tol=0)
    compare(dense, crowd, result, dense.run(len(result.trace)))


@pytest.mark.parametrize(("method", "model"), [("ibcc", "cm"), ("mace", "mace")])
@every_codec
def test_a_run_without_a_chain_equals_the_enumeration(method, model, codec):
    rng = np.random.default_rng(11)
    items = oracle.random_items(rng, codec)
    dense = oracle.DenseBsc(codec, items, 3, model, off=1.0, bonus=1.0, chain=False)
    crowd = oracle.crowd_of(codec, items, workers=3)
    result = goldspan.aggregate(crowd, method, truth_prior=1.0, max_iter=4, tol=0, n_starts=1)
    found = dense.run(len(result.trace))
    np.testing.assert_allclose(result.trace, dense.trace, rtol=0, atol=1e-9)
    marginals = np.concatenate([one.marginals for one in found])
    np.testing.assert_allclose(result.token_probs, marginals, rtol=0, atol=1e-7)
    entropy = [one.entropy for one in found]
    np.testing.assert_allclose(result.entropy, entropy, rtol=0, atol=1e-6)


def test_the_parameters_equal_those_of_dense_tables_even_for_labels_that_never_occur():
    codec, rng = CODECS["BIO2"], np.random.default_rng(13)
    items = oracle.random_items(rng, codec, n_items=2, longest=3)
    dense = oracle.DenseBsc(codec, items, 4, "seq")
    crowd = oracle.crowd_of(codec, items, workers=4)
    memory = goldspan.aggregate(crowd, "bsc-seq", max_iter=3, tol=0).memory
    dense.run(3)
    for worker in range(4):
        mean = memory.model.workers.mean(
            memory.posterior, memory.model.rows, memory.model.prior, worker
        )
        wanted = dense.alpha[worker] / dense.alpha[worker].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(mean, wanted, rtol=0, atol=1e-9)
