"""The compiled loops on evidence made by hand, to the last digits, and where products fail."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from aggregation.bsc import oracle
from goldspan.aggregation.bsc import kernels
from goldspan.aggregation.bsc.engine import Model, Tables, Truth, cut, e_step, from_votes
from goldspan.aggregation.bsc.evidence import Evidence, lay_out
from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.aggregation.workermodels import Prior, get_worker_model
from goldspan.chains.forward_backward import MAX_PRODUCT
from goldspan.errors import InputError
from goldspan.protocols import Serial
from goldspan.spans import Codec
from goldspan.spans.corpus import SpanArray

CODECS = {
    "BIO": Codec.from_types(["X", "Y"], "BIO"),
    "IOB": Codec.from_types(["X", "Y"], "IOB"),
    "IOBES": Codec.from_types(["X"], "IOBES"),
    "PLAIN": Codec.from_types(["a", "b", "c"], "PLAIN"),
}
every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
both = pytest.mark.parametrize("chain", [True, False], ids=["chain", "tokens"])


@dataclass
class Case:
    """Evidence and tables drawn at random: every token has rows of its own."""

    codec: Codec
    evidence: Evidence
    tables: Tables
    chain: bool

    def enumerated(self):
        e, logs = self.evidence, self.tables.log_table
        with np.errstate(divide="ignore"):
            truth, end = np.log(self.tables.truth), np.log(self.tables.end)
        n = logs.shape[1]
        step = truth[1:] if self.chain else np.tile(truth[0], (n, 1))
        for i in range(len(e.active)):
            first, last = e.offsets[i : i + 2]
            values = np.zeros((last - first, n))
            for t in range(first, last):
                values[t - first] = logs[e.row[e.bounds[t] : e.bounds[t + 1]]].sum(axis=0)
                if len(e.unary):
                    values[t - first] += e.unary[t]
                if len(e.gold) and e.gold[t] >= 0:
                    values[t - first, np.arange(n) != e.gold[t]] = -np.inf
            paths = oracle.legal_paths(self.codec, last - first, masked=self.chain)
            yield oracle.enumerate_item(values, truth[0], step, end, paths)

    def check(self):
        """Compare the E-step and the last pass with the sum over all truths."""
        found = list(self.enumerated())
        e = self.evidence
        sums = e_step(e, self.tables)
        scale = max(1.0, *(abs(one.log_z) for one in found))
        assert sums.log_z == pytest.approx(
            sum(one.log_z for one in found), abs=1e-12 * scale + 1e-9
        )
        marginals = np.concatenate([one.marginals for one in found])
        wanted = np.zeros_like(sums.counts)
        for t in range(e.n_tokens):
            np.add.at(wanted, e.row[e.bounds[t] : e.bounds[t + 1]], marginals[t])
        np.testing.assert_allclose(sums.counts, wanted, rtol=0, atol=1e-9 * wanted.max(initial=1))
        if self.chain:
            start = sum(one.marginals[0] for one in found)
            np.testing.assert_allclose(sums.truth[0], start, rtol=0, atol=1e-9)
            steps = sum(one.steps for one in found)
            np.testing.assert_allclose(sums.truth[1:], steps, rtol=0, atol=1e-9)
        else:
            np.testing.assert_allclose(sums.truth[0], marginals.sum(axis=0), rtol=0, atol=1e-9)
        self.check_posterior(found)

    def check_posterior(self, found):
        posterior = Posterior([self.evidence], self.tables, self.codec, Serial())
        last = posterior.marginals(1e-13)
        offsets = self.evidence.offsets
        for i, one in enumerate(found):
            own = slice(offsets[i], offsets[i + 1])
            np.testing.assert_allclose(last.probs[own], one.marginals, rtol=0, atol=1e-7)
            assert last.entropy[i] == pytest.approx(one.entropy, abs=1e-9)
            legal = {
                tuple(p) for p in oracle.legal_paths(self.codec, len(last.codes[own])).tolist()
            }
            best = max(one.log_of(path) for path in legal)
            assert tuple(last.codes[own].tolist()) in legal
            assert one.log_of(last.codes[own]) == pytest.approx(best, abs=1e-9)
            if self.codec.rules.is_plain:
                continue
            wanted = one.spans(self.codec)
            mine = last.item == i
            kinds = [self.codec.types[k] for k in last.kind[mine]]
            keys = zip(last.begin[mine].tolist(), last.stop[mine].tolist(), kinds, strict=True)
            masses = dict(zip(keys, last.mass[mine].tolist(), strict=True))
            for key in masses.keys() | wanted.keys():
                assert masses.get(key, 0.0) == pytest.approx(wanted.get(key, 0.0), abs=1e-9)
            self.check_paths(posterior, i, one, wanted)

    def check_paths(self, posterior, item, one, wanted):
        """Ask for the probability of every path and every possible span of an item."""
        offsets, codec = self.evidence.offsets, self.codec
        keys = sorted(wanted)
        n = len(keys)
        base = offsets[item]
        spans = SpanArray(
            np.array([base + a for a, _, _ in keys]), np.array([base + b for _, b, _ in keys]),
            np.array([codec.types.index(k) for *_, k in keys], np.int16),
            np.full(n, item, np.int32), np.zeros(n, np.int32),
        )  # fmt: skip
        probs = posterior.marginals().probs
        for path in one.paths[:: max(1, len(one.paths) // 5)]:
            codes = np.full(self.evidence.n_tokens, -1, np.int16)
            codes[offsets[item] : offsets[item + 1]] = path
            paths, masses = posterior.confidences(codes, spans, offsets, probs)
            assert paths[item] == pytest.approx(np.exp(one.log_of(path)), abs=1e-9)
            np.testing.assert_allclose(masses, [wanted[key] for key in keys], rtol=0, atol=1e-9)


def case(rng, codec, *, chain=True, lengths=(4, 1, 3, 5), n_answers=2, spread=2.0, gold=False):
    """Draw a case."""
    n, longest = len(codec.tags), 4 if len(codec.tags) > 3 else 5
    lengths = [min(length, longest) for length in lengths]
    n_tokens = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bounds = np.arange(n_tokens + 1) * n_answers
    row = rng.permutation(n_tokens * n_answers).astype(np.int32)
    logs = -np.abs(rng.normal(0, spread, size=(len(row), n)))
    truth = Truth.chain(codec) if chain else Truth.independent(n)
    table = np.exp(truth.log_table(rng.gamma(1.0, 2.0, size=truth.allowed.shape)))
    known = np.zeros(0, np.int16)
    if gold:
        rows = []
        for length in lengths:
            paths = oracle.legal_paths(codec, length)
            path = paths[rng.integers(len(paths))].copy()
            path[rng.random(length) < 0.5] = -1
            rows.append(path)
        known = np.concatenate(rows).astype(np.int16)
    evidence = Evidence(offsets, bounds, row, np.ones(len(lengths), bool), known, np.zeros((0, n)))
    return Case(codec, evidence, Tables(logs, np.exp(logs), table, truth.end), chain)


@every_codec
@both
@pytest.mark.parametrize("gold", [False, True], ids=["open", "gold"])
def test_sums_and_last_pass_equal_the_enumeration(codec, chain, gold):
    for seed in range(3):
        case(np.random.default_rng(seed), codec, chain=chain, gold=gold).check()


@every_codec
@both
@pytest.mark.parametrize("gold", [False, True], ids=["open", "gold"])
def test_evidence_from_elsewhere_equals_the_enumeration(codec, chain, gold):
    rng = np.random.default_rng(1)
    for spread in (1.0, 300.0):
        made = case(rng, codec, chain=chain, gold=gold)
        unary = rng.normal(0, spread, size=(made.evidence.n_tokens, len(codec.tags)))
        made.evidence = replace(made.evidence, unary=unary)
        made.check()


@every_codec
@both
@pytest.mark.parametrize("n_answers", [MAX_PRODUCT, MAX_PRODUCT + 1, 200])
def test_very_many_answers_per_token_equal_the_enumeration(codec, chain, n_answers):
    case(np.random.default_rng(n_answers), codec, chain=chain, n_answers=n_answers).check()


@every_codec
@both
@pytest.mark.parametrize("spread", [30.0, 150.0, 1000.0])
@pytest.mark.parametrize("gold", [False, True], ids=["open", "gold"])
def test_evidence_of_extreme_ratio_equals_the_enumeration(codec, chain, spread, gold):
    for seed in range(3):
        case(np.random.default_rng(seed), codec, chain=chain, spread=spread, gold=gold).check()


@pytest.mark.parametrize("gap", [190.0, 199.0, 201.0, 300.0])
def test_forced_steps_against_strong_evidence_keep_their_digits(gap):
    """All tokens favour I by far, and the gold O before them forbids it."""
    codec = CODECS["BIO"]
    made = case(np.random.default_rng(3), codec, lengths=(4,), n_answers=1)
    inside = codec.tags.index("I-X")
    made.tables.log_table[:] = -gap
    made.tables.log_table[:, inside] = 0
    made.tables.table[:] = np.exp(made.tables.log_table)
    for gold in ([0, -1, 0, -1], [0, -1, -1, -1], [-1, -1, -1, 0], [-1, 0, -1, -1]):
        made.evidence = replace(made.evidence, gold=np.array(gold, np.int16))
        made.check()


def test_a_label_that_a_table_forbids_altogether_gets_no_probability_and_no_nan():
    made = case(np.random.default_rng(4), CODECS["PLAIN"])
    made.tables.log_table[0, 1] = -np.inf
    made.tables.table[0, 1] = 0.0
    made.check()


@both
def test_slices_of_items_give_what_the_whole_gives(chain):
    made = case(np.random.default_rng(6), CODECS["BIO"], chain=chain, gold=True)
    made.evidence = replace(
        made.evidence, unary=np.random.default_rng(7).normal(size=(made.evidence.n_tokens, 5))
    )
    whole = e_step(made.evidence, made.tables)
    parts = [made.evidence.items(0, 1), made.evidence.items(1, 4)]
    parts = [parts[0], parts[1].items(0, 1), parts[1].items(1, 3)]
    found = [e_step(part, made.tables) for part in parts]
    assert [part.n_tokens for part in parts] == np.diff(
        made.evidence.offsets[[0, 1, 2, 4]]
    ).tolist()
    for name in ("counts", "truth", "log_z"):
        total = sum(getattr(one, name) for one in found)
        np.testing.assert_allclose(total, getattr(whole, name), rtol=1e-12, atol=1e-12)


@pytest.mark.compiles
def test_a_posterior_of_several_shards_answers_like_one_of_one():
    made = case(np.random.default_rng(8), CODECS["BIO"])
    e = made.evidence
    one = Posterior([e], made.tables, made.codec, Serial())
    more = Posterior([e.items(0, 2), e.items(2, 4)], made.tables, made.codec, Serial())
    for a, b in zip(one.marginals(), more.marginals(), strict=True):
        np.testing.assert_array_equal(a, b)
    for item in range(4):
        assert one.alternatives(item, 0) == more.alternatives(item, 0)
        assert one.alternatives(item, 0)


def test_items_of_which_nothing_is_known_are_passed_over():
    made = case(np.random.default_rng(9), CODECS["BIO"])
    active = np.array([True, False, True, False])
    made.evidence = replace(made.evidence, active=active)
    sums = e_step(made.evidence, made.tables)
    found = list(made.enumerated())
    assert sums.log_z == pytest.approx(found[0].log_z + found[2].log_z)
    last = Posterior([made.evidence], made.tables, made.codec, Serial()).marginals()
    open_ = np.repeat(~active, np.diff(made.evidence.offsets))
    assert (last.codes[open_] == -1).all()
    assert (last.codes[~open_] >= 0).all()
    assert not last.probs[open_].any()
    assert set(last.item.tolist()) == {0, 2}
    assert not last.entropy[~active].any()


def test_gold_that_no_legal_sequence_holds_is_refused():
    made = case(np.random.default_rng(10), CODECS["BIO"], lengths=(2,))
    bad = [made.codec.tags.index("O"), made.codec.tags.index("I-X")]
    made.evidence = replace(made.evidence, gold=np.array(bad, np.int16))
    with pytest.raises(InputError, match="no legal sequence"):
        e_step(made.evidence, made.tables)


@pytest.mark.parametrize("truth_prior", [0.001, 0.0015, 0.002, 0.01])
def test_steps_that_almost_never_happen_keep_their_digits(truth_prior):
    """With a small pseudo-count an unseen step has exp(E ln T) of 1e-217, or of exactly 0."""
    codec = CODECS["BIO"]
    truth = Truth.chain(codec, truth_prior)
    seen = np.zeros((6, 5))
    seen[0, 0], seen[1, 0] = 3, 20
    for seed in range(20):
        made = case(np.random.default_rng(seed), codec, spread=60.0)
        with np.errstate(divide="ignore"):
            log_truth = np.log(np.exp(truth.log_table(seen)))
        made.tables = replace(made.tables, truth=np.exp(log_truth))
        made.check()


def test_a_step_that_many_workers_vote_for_and_the_encoding_forbids_does_no_harm():
    codec = CODECS["BIO"]
    made = case(np.random.default_rng(13), codec, lengths=(2,), n_answers=200)
    logs = made.tables.log_table
    logs[:] = -5.0
    logs[made.evidence.row[:200], codec.tags.index("O")] = -0.1
    logs[made.evidence.row[200:], codec.tags.index("I-X")] = -0.1
    made.tables.table[:] = np.exp(logs)
    made.check()


@both
def test_the_statistics_to_begin_with_are_vote_shares_with_neighbours_independent(chain):
    codec = CODECS["BIO"]
    items = [{0: [0, 1, -1], 1: [0, 3, -1], 2: [2, -1, -1]}, {0: [1]}, {1: [0, 0], 2: [-1, 1]}]
    crowd = oracle.crowd_of(codec, items, workers=3)
    gold = np.array([-1, -1, -1, 4, -1, 0], np.int16)
    evidence, rows = lay_out(crowd, has_memory=False, gold=gold)
    eye = np.eye(5)
    r = [
        eye[0] * 2 / 3 + eye[2] / 3,
        (eye[1] + eye[3]) / 2,
        np.full(5, 0.2),
        eye[4],
        eye[0],
        eye[0],
    ]
    truth = Truth.chain(codec) if chain else Truth.independent(5)
    model = Model(get_worker_model("cm"), rows, Prior(), truth)
    shards = [evidence.items(0, 1), evidence.items(1, 3)]
    found = from_votes(model, shards, Serial())
    if chain:
        steps = np.outer(r[0], r[1]) + np.outer(r[1], r[2]) + np.outer(r[4], r[5])
        wanted = np.vstack([r[0] + r[3] + r[4], steps]) * truth.allowed
    else:
        wanted = np.sum(r, axis=0)[None]
    np.testing.assert_allclose(found.truth, wanted, rtol=1e-12, atol=1e-15)
    dense = np.zeros((3, 5, 5))
    for t, k, code in [(0, 0, 0), (0, 1, 0), (0, 2, 2), (1, 0, 1), (1, 1, 3), (3, 0, 1),
                       (4, 1, 0), (5, 1, 0), (5, 2, 1)]:  # fmt: skip
        dense[k, code] += r[t]
    np.testing.assert_allclose(found.counts, dense[rows.worker, rows.label], rtol=1e-12)


@pytest.mark.parametrize("n_items", [1, 2, 7, 3000])
def test_shards_cover_every_item_once_and_in_order(n_items):
    rng = np.random.default_rng(n_items)
    lengths = rng.integers(0, 30, size=n_items)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    per_token = rng.integers(0, 6, size=offsets[-1])
    bounds = np.concatenate([[0], np.cumsum(per_token)])
    row = rng.integers(0, 50, size=bounds[-1]).astype(np.int32)
    active = np.ones(n_items, bool)
    whole = Evidence(offsets, bounds, row, active, np.zeros(0, np.int16), np.zeros((0, 3)))
    shards = cut(whole, 50)
    assert (len(shards) > 1) == (len(row) >= 2 << 15)
    assert all(len(shard.active) for shard in shards)
    edges = [shard.offsets[0] for shard in shards] + [shards[-1].offsets[-1]]
    assert edges[0] == 0
    assert edges[-1] == offsets[-1]
    np.testing.assert_array_equal(np.concatenate([shard.row for shard in shards]), row)
    seen = np.concatenate([[0], *(shard.offsets[1:] for shard in shards)])
    np.testing.assert_array_equal(seen, offsets)
    if len(shards) > 1:
        work = [len(shard.row) + shard.n_tokens for shard in shards]
        assert max(work) < 1.2 * min(work)


@dataclass
class Large:
    """Single labels whose tables are larger than what is in the caches anyway."""

    bounds: np.ndarray
    row: np.ndarray
    table: np.ndarray
    share: np.ndarray

    @classmethod
    def drawn(cls, n_labels, n_tokens=5_000, seed=5):
        rng = np.random.default_rng(seed)
        n_rows = (1 << 18) // n_labels
        bounds = np.concatenate([[0], np.cumsum(rng.integers(0, 6, n_tokens))])
        row = rng.integers(0, n_rows, bounds[-1]).astype(np.int32)
        table = rng.uniform(0.1, 1.0, (n_rows, n_labels))
        return cls(bounds, row, table, rng.dirichlet(np.ones(n_labels)))

    @property
    def token(self):
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def truth(self):
        """Return the unscaled probabilities of every token."""
        found = np.tile(self.share, (len(self.bounds) - 1, 1))
        np.multiply.at(found, self.token, self.table[self.row])
        return found

    def scattered(self, share):
        counts = np.zeros_like(self.table)
        np.add.at(counts, self.row, share[self.token])
        return counts

    def items(self):
        """Return offsets, bounds, row, active and no gold, every token an item."""
        n = len(self.bounds) - 1
        active = np.ones(n, np.bool_)
        return np.arange(n + 1), self.bounds, self.row, active, np.zeros(0, np.int16)


@pytest.mark.parametrize("n_labels", [2, 3, 4, 5, 9, 20])
def test_an_e_step_over_a_large_table_is_right(n_labels):
    case = Large.drawn(n_labels)
    counts, shares, none = np.zeros_like(case.table), np.zeros(n_labels), np.zeros((0, n_labels))
    tables = case.table, np.log(case.table), case.share
    log_z = kernels.token_step(*case.items(), none, *tables, counts, shares)
    truth = case.truth()
    total = truth.sum(axis=1)
    assert log_z == pytest.approx(np.log(total).sum())
    np.testing.assert_allclose(shares, (truth / total[:, None]).sum(axis=0))
    np.testing.assert_allclose(counts, case.scattered(truth / total[:, None]))
    codes, entropy = np.empty(len(truth), np.int16), np.empty(len(truth))
    probs = np.empty(truth.shape, np.float32)
    kernels.label_step(*case.items(), none, *tables, codes, probs, entropy)
    np.testing.assert_allclose(probs, truth / total[:, None], rtol=1e-6)
    np.testing.assert_array_equal(codes, probs.argmax(axis=1))


@pytest.mark.parametrize("n_labels", [2, 9])
def test_patterns_and_votes_over_a_large_table_are_right(n_labels):
    case, rng = Large.drawn(n_labels), np.random.default_rng(6)
    n, logs = len(case.bounds) - 1, np.log(case.table)
    out, shift = np.empty((n, n_labels)), np.empty(n)
    kernels.pattern_logs(case.bounds, case.row, np.zeros(0), logs, out, shift)
    wanted = np.zeros((n, n_labels))
    np.add.at(wanted, case.token, logs[case.row])
    np.testing.assert_allclose(out + shift[:, None], wanted, atol=1e-12)
    own, counts = rng.uniform(size=(n, n_labels)), np.zeros_like(case.table)
    kernels.spread(case.bounds, case.row, own, counts)
    np.testing.assert_allclose(counts, case.scattered(own))
    label = rng.integers(0, n_labels, len(case.table)).astype(np.int16)
    counts, shares = np.zeros_like(case.table), np.zeros(n_labels)
    kernels.vote_step(
        *case.items(), np.zeros(0), label, counts, shares, np.zeros((0, 0))
    )  # fmt: skip
    votes = np.zeros((n, n_labels))
    np.add.at(votes, (case.token, label[case.row]), 1.0)
    given = votes.sum(axis=1, keepdims=True)
    votes = np.where(given > 0, votes / np.maximum(given, 1), 1 / n_labels)
    np.testing.assert_allclose(shares, votes.sum(axis=0))
    np.testing.assert_allclose(counts, case.scattered(votes))
