"""A run as one lives with it: stopped and resumed, begun warm, asked about new items, misled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from aggregation.bsc import oracle
from aggregation.bsc.fitted import BIO, FITTED, PLAIN, crowd_of, every_method, identical
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.bsc import engine
from goldspan.aggregation.bsc.engine import Stopping
from goldspan.aggregation.bsc.priors import LEAST_COUNT
from goldspan.errors import InputError, NotFittedError
from goldspan.protocols import Serial
from goldspan.runners import FileCheckpoint
from goldspan.spans import Codec, validate


def is_defined(result):
    """Check that a result holds no NaN and nothing out of bounds, and that its tags are legal."""
    crowd = result.crowd
    assert np.isfinite(result.trace).all()
    assert np.isfinite(result.token_probs).all()
    known = result.codes >= 0
    np.testing.assert_allclose(result.token_probs[known].sum(axis=1), 1, atol=1e-5)
    for values in (result.confidence, result.span_confidence, result.token_confidence):
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()
    assert np.isfinite(result.entropy).all()
    assert (result.entropy >= 0).all()
    for tags in result.tags:
        assert None in tags or not validate(tags, crowd.tagset.encoding)
    assert len(result.workers) == crowd.n_workers
    return result


class Killed(BaseException):
    """Like a signal: nothing catches it."""


def raise_at(step, error):
    def progress(done, total, objective, seconds_left):
        assert total >= done >= 1
        assert np.isfinite(objective)
        assert seconds_left >= 0
        if done == step:
            raise error

    return progress


# Checkpoints


@every_method
@pytest.mark.parametrize("killed_at", [1, 2, 5, 9])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(method, killed_at, tmp_path):
    crowd = crowd_of()
    options = {"max_iter": 9, "tol": 0, "n_starts": 1}
    whole = goldspan.aggregate(crowd, method, **options)
    checkpoint = FileCheckpoint(tmp_path / "run")
    with pytest.raises(Killed):
        goldspan.aggregate(
            crowd, method, checkpoint=checkpoint, progress=raise_at(killed_at, Killed()), **options
        )
    assert checkpoint.path.exists() == (killed_at > 1)
    identical(goldspan.aggregate(crowd, method, checkpoint=checkpoint, **options), whole)


@every_method
@pytest.mark.parametrize("tol", [0, 1e-3])
def test_a_run_that_was_over_gives_the_same_result_from_its_checkpoint(method, tol, tmp_path):
    crowd, checkpoint = crowd_of(), FileCheckpoint(tmp_path / "run")
    options = {"max_iter": 7, "tol": tol, "n_starts": 1}
    whole = goldspan.aggregate(crowd, method, checkpoint=checkpoint, **options)
    for _ in range(2):
        identical(goldspan.aggregate(crowd, method, checkpoint=checkpoint, **options), whole)


@pytest.mark.parametrize(
    ("change", "options"),
    [(1, {}), (0, {"epsilon0": 5.0}), (0, {"after_skip": "outside"})],
    ids=["answers", "prior", "option"],
)
def test_the_checkpoint_of_other_answers_or_parameters_is_refused(change, options, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "run")
    goldspan.aggregate(crowd_of(0), "bsc-seq", checkpoint=checkpoint, max_iter=3)
    with pytest.raises(InputError, match="another run"):
        goldspan.aggregate(
            crowd_of(change), "bsc-seq", checkpoint=checkpoint, max_iter=3, **options
        )


def test_a_damaged_checkpoint_stops_the_run_with_the_file_name(tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "run")
    goldspan.aggregate(crowd_of(), "bsc-cm", checkpoint=checkpoint, max_iter=3)
    data = checkpoint.path.read_bytes()
    checkpoint.path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="run is not a checkpoint of goldspan, or it is damaged"):
        goldspan.aggregate(crowd_of(), "bsc-cm", checkpoint=checkpoint, max_iter=3)


@pytest.mark.parametrize("what", ["tags", "encoding", "history", "start", "method"])
def test_a_checkpoint_belongs_to_its_tags_and_to_what_the_run_began_with(what, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "run")
    codecs = [
        Codec.from_types("X", "BIO"),
        Codec.from_types("X", "IOB1" if what == "encoding" else "BIO"),
    ]
    if what == "tags":
        codecs[1] = Codec.from_types("Y", "BIO")
    crowds = [oracle.crowd_of(codec, [{0: [0, 1], 1: [1, 0]}]) for codec in codecs]
    methods_ = ["bsc-cm", "bsc-cv" if what == "method" else "bsc-cm"]
    options = [{}, {}]
    if what in {"history", "start"}:
        rows = [{0: [0, 1], 1: [1, 0]}, {0: [0, 1], 1: [1, 1]}]
        options = [
            {what: goldspan.aggregate(oracle.crowd_of(codecs[0], [row]), "bsc-cm")} for row in rows
        ]

    def go(n):
        return goldspan.aggregate(
            crowds[n], methods_[n], checkpoint=checkpoint, max_iter=4, tol=0, **options[n]
        )

    identical(go(0), go(0))
    with pytest.raises(InputError, match="another run"):
        go(1)


# Ctrl-C


@every_method
@pytest.mark.parametrize("step", [1, 3])
def test_ctrl_c_leaves_the_result_of_the_last_step(method, step):
    crowd = crowd_of()
    options = {"tol": 0, "n_starts": 1}
    result = goldspan.aggregate(
        crowd, method, progress=raise_at(step, KeyboardInterrupt()), max_iter=9, **options
    )
    assert result.stop_reason == "interrupted"
    assert not result.converged
    wanted = goldspan.aggregate(crowd, method, max_iter=step, **options)
    assert result.trace == wanted.trace
    np.testing.assert_array_equal(result.token_probs, wanted.token_probs)
    is_defined(result)


# Warm starts, predictions, history, trust


@every_method
def test_a_warm_start_goes_on_where_the_other_stopped(method):
    crowd = crowd_of()
    options = {"tol": 0, "n_starts": 1}
    whole = goldspan.aggregate(crowd, method, max_iter=9, **options)
    part = goldspan.aggregate(crowd, method, max_iter=5, **options)
    rest = goldspan.aggregate(crowd, method, start=part, max_iter=5, **options)
    if "mace" in method:  # its posterior depends on the one before, which is not carried over
        assert rest.trace[-1] == pytest.approx(whole.trace[-1], rel=1e-3)
        return
    np.testing.assert_allclose(part.trace + rest.trace[1:], whole.trace, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rest.token_probs, whole.token_probs, atol=2e-7)


@every_method
def test_a_warm_start_carries_over_to_other_items_and_workers_by_name(method):
    crowd = crowd_of(n_items=30, skip=0)
    early = goldspan.aggregate(crowd.select_items(np.arange(25)), method)
    order = np.array([3, 1, 0, 4, 2])
    new = np.argsort(order).astype(np.int32)
    later = replace(
        crowd,
        worker_ids=crowd.worker_ids.take(pa.array(order)),
        answers=replace(crowd.answers, worker=new[crowd.answers.worker]),
    )
    warm = is_defined(goldspan.aggregate(later, method, start=early, n_starts=1))
    cold = goldspan.aggregate(crowd, method)
    assert warm.trace[-1] == pytest.approx(cold.trace[-1], rel=0.02)
    assert (warm.codes == cold.codes).mean() > 0.9


@every_method
def test_a_prediction_is_an_e_step_with_the_parameters_of_the_fit(method):
    """Of the fitted items themselves it gives what the fit gave."""
    crowd = crowd_of(n_items=20)
    aggregator = get_aggregator(method, n_starts=1, tol=1e-12, max_iter=2000)
    fitted = aggregator.fit(crowd).result_
    some = crowd.select_items(np.array([4, 0, 7]))
    found = is_defined(aggregator.predict(some))
    for new, old in enumerate([4, 0, 7]):
        a, b = (slice(*c.offsets[n : n + 2]) for c, n in ((crowd, old), (some, new)))
        np.testing.assert_allclose(found.token_probs[b], fitted.token_probs[a], atol=1e-4)
    assert found.trace == ()
    assert aggregator.result_ is fitted


@pytest.mark.parametrize("model", ["acc", "cv", "cm", "seq"])
def test_a_prediction_for_new_items_equals_the_enumeration(model):
    """New answers, an unknown worker and an unseen label of a known one, under fixed tables."""
    rng = np.random.default_rng(3)
    items = oracle.random_items(rng, BIO, n_items=6, n_workers=3, longest=4)
    aggregator = get_aggregator(f"bsc-{model}", max_iter=4, tol=0)
    aggregator.fit(oracle.crowd_of(BIO, items, workers=3))
    fresh = oracle.random_items(rng, BIO, n_items=4, n_workers=4, longest=4)
    found = aggregator.predict(oracle.crowd_of(BIO, fresh, workers=4))
    dense = oracle.DenseBsc(BIO, items, 4, model)
    dense.run(4)
    table = dense.workers.update(dense.counts, None)[1]
    log_truth = np.full(dense.allowed.shape, -np.inf)
    sums = aggregator.result_.memory.sums.truth
    for row, ok in enumerate(dense.allowed):
        log_truth[row, ok] = oracle.expected_log(1.0 + sums[row, ok])
    dense.items, dense.lengths = fresh, [len(next(iter(item.values()))) for item in fresh]
    wanted = [dense.item(n, table, log_truth, np.zeros((5, 0))).marginals for n in range(4)]
    np.testing.assert_allclose(found.token_probs, np.concatenate(wanted), atol=2e-7)


def test_a_prediction_needs_a_fit_and_the_same_tags():
    aggregator = get_aggregator("bsc-cm")
    with pytest.raises(NotFittedError, match="call fit first"):
        aggregator.predict(crowd_of())
    aggregator.fit(crowd_of())
    with pytest.raises(InputError, match="must not have others"):
        aggregator.predict(crowd_of(codec=Codec.from_types(["Elsewhere"], "BIO")))


@pytest.mark.parametrize(
    ("method", "earlier"), [("bsc-cm", "bsc-seq"), ("bsc-cm", "mv-token"), ("bsc-cm", "ds")]
)
def test_the_result_of_another_model_cannot_be_gone_on_from(method, earlier):
    crowd = crowd_of()
    with pytest.raises(InputError, match=r"Dawid-Skene|worker model"):
        goldspan.aggregate(crowd, method, start=goldspan.aggregate(crowd, earlier))


@pytest.mark.parametrize(
    ("method", "earlier"),
    [("bsc-cm", "ibcc"), ("ibcc", "bsc-cm"), ("mace", "bsc-mace"), ("bsc-mace", "mace")],
)
def test_a_result_with_a_chain_is_no_start_for_one_without(method, earlier):
    crowd = crowd_of()
    with pytest.raises(InputError, match="chain"):
        goldspan.aggregate(crowd, method, start=goldspan.aggregate(crowd, earlier))


@pytest.mark.parametrize("model", ["cm", "seq", "cv", "acc"])
def test_a_history_counts_as_the_expected_answers_of_the_past(model):
    crowd = crowd_of(n_items=20)
    past = goldspan.aggregate(crowd.select_items(np.arange(15)), f"bsc-{model}")
    later = crowd.select_items(np.arange(15, 20))
    result = is_defined(goldspan.aggregate(later, f"bsc-{model}", history=past, max_iter=1))
    rows, old = result.memory.model.rows, past.memory
    assert result.memory.model.prior.history.sum() == pytest.approx(
        old.sums.counts[: len(old.model.rows)].sum()
    )
    assert len(rows) >= len(old.model.rows)


def test_a_history_makes_a_known_good_worker_outvote_two_strangers():
    rows = [f"q{n},{w},{label}" for n in range(40) for w, label in
            (("good", "xy"[n % 2]), ("u", "xy"[n % 2]), ("v", "xy"[n % 2]))]  # fmt: skip
    past = goldspan.aggregate("\n".join(["task,worker,label", *rows]).encode(), "ibcc")
    new = b"task,worker,label\nz,good,x\nz,p,y\nz,q,y\ny,p,y\ny,q,x\n"
    assert goldspan.aggregate(new, "ibcc").labels[0] == "y"
    assert goldspan.aggregate(new, "ibcc", history=past).labels[0] == "x"


@every_method
def test_a_trusted_worker_is_believed_against_two_others(method):
    codec = Codec.from_types(["a", "b"], "PLAIN")
    items = [{0: [n % 2], 1: [1 - n % 2], 2: [1 - n % 2]} for n in range(6)]
    crowd = oracle.crowd_of(codec, items, workers=3)
    plain = goldspan.aggregate(crowd, method)
    assert plain.codes.tolist() == [1, 0, 1, 0, 1, 0]
    trusted = goldspan.aggregate(crowd, method, trusted=["w0"], n_starts=5)
    accuracy = trusted.memory.model.workers.mean(
        trusted.memory.posterior, trusted.memory.model.rows, trusted.memory.model.prior, 0
    )
    before = plain.memory.model.workers.mean(
        plain.memory.posterior, plain.memory.model.rows, plain.memory.model.prior, 0
    )
    assert np.diagonal(accuracy[0]).mean() > np.diagonal(before[0]).mean()


def without_the_first_worker(crowd):
    answers = crowd.answers.take(crowd.answers.worker > 0)
    answers = replace(answers, worker=answers.worker - 1)
    return replace(crowd, answers=answers, worker_ids=crowd.worker_ids.slice(1))


def test_new_items_need_not_have_the_trusted_workers():
    crowd = crowd_of()
    aggregator = get_aggregator("bsc-cm", trusted=["w0", "w3"])
    aggregator.fit(crowd)
    found = aggregator.predict(without_the_first_worker(crowd))
    assert found.memory.model.prior.bonus.tolist() == [18.75, 18.75, 118.75, 18.75]


def test_an_unknown_worker_has_the_bonus_that_the_grid_chose():
    crowd = crowd_of(n_items=20)
    aggregator = get_aggregator("bsc-cm", prior="auto", trusted=["w1"], epsilon0=7.0)
    fitted = aggregator.fit(without_the_first_worker(crowd)).result_
    (note,) = (note for note in fitted.notes if note.startswith("prior chosen"))
    chosen = float(note.rpartition("=")[2])
    assert chosen != 7.0
    found = aggregator.predict(crowd).memory.model.prior
    assert found.bonus.tolist() == [chosen, chosen + 100, chosen, chosen, chosen]
    assert found.off == fitted.memory.model.prior.off


@pytest.mark.parametrize(
    ("model", "prior"),
    [(m, p) for m in ("cm", "seq", "acc", "mace") for p in ("given", "auto")]
    + [(m, p) for m in ("cm", "seq") for p in ("population", "votes")],
)
def test_a_prediction_uses_the_prior_that_the_fit_chose(model, prior):
    """Also with trust, a history, and parameters that were set after the fit."""
    crowd = crowd_of(n_items=20)
    some, rest = crowd.select_items(np.arange(12)), crowd.select_items(np.arange(12, 20))
    aggregator = get_aggregator(
        f"bsc-{model}", prior=prior, tol=1e-13, max_iter=5000, trusted="w2",
        history=goldspan.aggregate(rest, f"bsc-{model}"),
    )  # fmt: skip
    fitted = aggregator.fit(some).result_
    aggregator.set_params(prior="given", alpha0=50.0, history=None, trusted=(), truth_prior=9.0)
    found = aggregator.predict(some)
    np.testing.assert_allclose(found.token_probs, fitted.token_probs, atol=2e-4)


def test_a_worker_whom_only_the_history_knows_is_known_in_predictions():
    crowd = crowd_of(n_items=20)
    past = goldspan.aggregate(crowd, "bsc-cm")
    aggregator = get_aggregator("bsc-cm", history=past)
    aggregator.fit(without_the_first_worker(crowd))
    prior = aggregator.predict(crowd).memory.model.prior
    assert prior.history.sum() == pytest.approx(past.memory.sums.counts.sum())


def test_earlier_results_must_mean_the_same_by_a_previous_label():
    """With one state apart each, the tables have the same shape and mean something else."""
    crowd = crowd_of()
    past = goldspan.aggregate(crowd, "bsc-seq", at_start="own", after_skip="outside")
    for what in ("start", "history"):
        with pytest.raises(InputError, match=f"{what}: .* has at_start='own', this one 'outside'"):
            goldspan.aggregate(crowd, "bsc-seq", max_iter=1, **{what: past})


@pytest.mark.parametrize("n_starts", [1, 3])
@pytest.mark.parametrize("prior", ["auto", "population", "votes"])
def test_a_run_that_finds_its_prior_leaves_a_checkpoint_of_the_last_run_only(
    prior, n_starts, tmp_path
):
    options = {"prior": prior, "max_iter": 6, "tol": 0, "n_starts": n_starts}
    checkpoint = FileCheckpoint(tmp_path / "run")
    whole = goldspan.aggregate(crowd_of(), "bsc-cm", **options)
    heard = []

    def kill(done, *_):
        heard.append(done)
        if done == 4 and heard.count(4) == (2 if prior == "population" else 1):
            raise Killed

    with pytest.raises(Killed):
        goldspan.aggregate(crowd_of(), "bsc-cm", checkpoint=checkpoint, progress=kill, **options)
    assert checkpoint.path.exists()
    for _ in range(2):
        identical(goldspan.aggregate(crowd_of(), "bsc-cm", checkpoint=checkpoint, **options), whole)


@pytest.mark.parametrize("method", ["ds", "bsc-cm", "bsc-seq"])
def test_the_prior_of_votes_is_the_habits_that_the_vote_shares_show(method):
    """Counted label by label: how often all workers gave it, by the shares at its token."""
    crowd = crowd_of(4)
    result = goldspan.aggregate(crowd, method, prior="votes", epsilon0=7.0, max_iter=2)
    prior, rows = result.memory.model.prior, result.memory.model.rows
    n_labels, outside, skipped = rows.n_labels, crowd.tagset.outside, rows.n_labels
    base = np.zeros((rows.n_previous, n_labels, n_labels))
    given = {}  # token: the labels, each with the one before
    for n in range(len(crowd.latest)):
        answer = slice(crowd.latest.offset[n], crowd.latest.offset[n + 1])
        before = outside
        for at, code in enumerate(crowd.latest.codes[answer].tolist()):
            if code >= 0:
                token = crowd.offsets[crowd.latest.item[n]] + at
                given.setdefault(token, []).append((before if rows.n_previous > 1 else 0, code))
            before = code if code >= 0 else skipped
    for labels in given.values():
        for _, truth in labels:
            for previous, code in labels:
                base[previous, truth, code] += 1 / len(labels)
    base += LEAST_COUNT
    base *= 7.0 / base.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(prior.base, np.maximum(base, LEAST_COUNT), atol=1e-9)
    assert any("by the vote shares" in note for note in result.notes)


class Pressed(Serial):
    """A runner during whose n-th E-step somebody presses Ctrl-C; counts them all."""

    def __init__(self, at):
        self.at, self.steps = at, 0

    def map_reduce(self, fn, shards, params, merge):
        self.steps += fn is engine.e_step
        if fn is engine.e_step and self.steps == self.at:
            raise KeyboardInterrupt
        return super().map_reduce(fn, shards, params, merge)


@pytest.mark.parametrize("at", [5, 8, 9, 11])
def test_ctrl_c_in_a_later_start_leaves_the_best_so_far(at):
    """Steps 5 and 9 are the first of the second and of the third start."""
    crowd, runner = crowd_of(3), Pressed(at)
    options = {"max_iter": 4, "tol": 0, "random_state": 1}
    result = is_defined(goldspan.aggregate(crowd, "mace", n_starts=5, runner=runner, **options))
    assert (result.stop_reason, result.converged) == ("interrupted", False)
    assert runner.steps == at
    best = goldspan.aggregate(crowd, "mace", n_starts=1 + (at > 8), **options)
    assert result.trace[-1] >= best.trace[-1]


def test_ctrl_c_while_another_start_is_drawn_leaves_the_best_so_far(monkeypatch):
    class Hand:
        def gamma(self, *_args, **_words):
            raise KeyboardInterrupt

    crowd, options = crowd_of(3), {"max_iter": 4, "tol": 0, "random_state": 1}
    first = goldspan.aggregate(crowd, "mace", n_starts=1, **options)
    monkeypatch.setattr(engine.np.random, "default_rng", lambda _: Hand())
    result = is_defined(goldspan.aggregate(crowd, "mace", n_starts=3, **options))
    assert (result.stop_reason, result.converged) == ("interrupted", False)
    assert result.trace == first.trace


def test_of_several_starts_only_the_best_has_its_tables_made(monkeypatch):
    """Once for every step, and once for the labels: tables of many workers are large."""
    made, real = [], engine.Model.tables
    monkeypatch.setattr(engine.Model, "tables", lambda *given: made.append(given) or real(*given))
    goldspan.aggregate(crowd_of(3), "mace", n_starts=3, max_iter=4, tol=0)
    assert len(made) == 3 * 4 + 1


@pytest.mark.parametrize("at", [2, 4, 5, 30])
def test_ctrl_c_ends_the_search_for_a_prior(at):
    crowd, runner = crowd_of(), Pressed(at)
    options = {"prior": "auto", "max_iter": 3, "tol": 0}
    result = is_defined(goldspan.aggregate(crowd, "bsc-cm", runner=runner, **options))
    assert (result.stop_reason, result.converged) == ("interrupted", False)
    assert runner.steps == at
    assert any(note.startswith("prior chosen") for note in result.notes)


@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_ctrl_c_ends_the_search_for_the_population(at):
    """The first run has steps 1 to 4, the second 5 to 8."""
    crowd, runner = crowd_of(), Pressed(at)
    options = {"prior": "population", "max_iter": 4, "tol": 0}
    result = is_defined(goldspan.aggregate(crowd, "bsc-cm", runner=runner, **options))
    assert (result.stop_reason, result.converged) == ("interrupted", False)
    assert runner.steps == at
    assert len(result.trace) == (at - 1 if at < 6 else 1)
    assert (result.memory.model.prior.base is None) == (at < 6)
    if at < 6:
        plain = goldspan.aggregate(crowd, "bsc-cm", max_iter=at - 1, tol=0)
        np.testing.assert_array_equal(result.token_probs, plain.token_probs)


@pytest.mark.parametrize("prior", ["given", "auto", "population"])
def test_ctrl_c_before_the_first_step_leaves_nothing(prior):
    with pytest.raises(KeyboardInterrupt):
        goldspan.aggregate(crowd_of(), "bsc-cm", prior=prior, runner=Pressed(1), n_starts=3)


@pytest.mark.parametrize("given", ["w0,w2", "w0, w2,", ["w0", "w2"], ("w0", "w2")])
def test_trusted_workers_are_ids_or_one_string_and_come_back_as_given(given):
    aggregator = get_aggregator("ibcc", trusted=given)
    assert aggregator.get_params()["trusted"] is given
    bonus = aggregator.fit(crowd_of()).result_.memory.model.prior.bonus
    assert np.flatnonzero(bonus > 50).tolist() == [0, 2]
    assert aggregator.result_.params["trusted"] is given


def test_an_unknown_trusted_worker_is_refused():
    with pytest.raises(InputError, match="no worker 'nobody'"):
        goldspan.aggregate(crowd_of(), "bsc-cm", trusted=["nobody"])


# Bad and odd input


ALONE = Codec.from_types(["a"], "PLAIN")
ODD = {
    "one answer": (BIO, [{0: [1, 2, 0]}], None),
    "one answer of labels": (PLAIN, [{0: [1, 2, 0]}], None),
    "always the same": (BIO, [{0: [0, 0], 1: [0, 0]}] * 5, [["O", "O"]] * 5),
    "a label each": (PLAIN, [{0: [0], 1: [1], 2: [2]}] * 10, None),
    "a single label": (ALONE, [{0: [0, 0, -1], 1: [-1, 0, -1]}, {1: [0]}], [["a"] * 3, ["a"]]),
    "outside alone": (Codec(("O",), "BIO"), [{0: [0, 0]}], [["O", "O"]]),
}


@every_method
@pytest.mark.parametrize(("codec", "items", "tags"), ODD.values(), ids=ODD)
def test_odd_crowds_leave_a_defined_result(method, codec, items, tags):
    result = is_defined(goldspan.aggregate(oracle.crowd_of(codec, items), method))
    assert tags is None or result.tags == tags
    if len(codec.tags) == 1:
        np.testing.assert_allclose(result.token_probs, 1)


@every_method
def test_two_hundred_labels_are_worked_on(method):
    codec = Codec.from_types([f"t{j:03}" for j in range(100)], "BIO")
    assert len(codec.tags) == 201
    rng = np.random.default_rng(0)
    items = oracle.random_items(rng, codec, n_items=5, n_workers=3, longest=4)
    is_defined(goldspan.aggregate(oracle.crowd_of(codec, items, workers=3), method, max_iter=3))


@pytest.mark.parametrize("method", ["bsc-seq", "bsc-cm+words", "ibcc", "mace"])
def test_an_item_of_fifty_thousand_tokens_is_nothing_special(method):
    rng = np.random.default_rng(0)
    n = 50_000
    truth = np.where(rng.random(n) < 0.2, 1, 0)
    answers = {
        k: np.where(rng.random(n) < 0.8, truth, rng.integers(0, 3, n)).tolist() for k in range(3)
    }
    codec = Codec.from_types(["X"], "BIO")
    crowd = oracle.crowd_of(codec, [answers, {0: [0, 1]}], workers=3)
    result = is_defined(goldspan.aggregate(crowd, method, max_iter=5, n_starts=1))
    assert (result.codes[:n] == truth).mean() > 0.85


@every_method
def test_answers_that_skip_every_token_leave_every_item_open(method):
    crowd = crowd_of()
    nothing = np.full(len(crowd.answers.codes), -1, np.int16)
    empty = replace(crowd, answers=replace(crowd.answers, codes=nothing))
    result = is_defined(goldspan.aggregate(empty, method))
    assert (result.codes == -1).all()
    assert not result.token_probs.any()


@every_method
def test_an_item_of_which_only_gold_is_known_is_decided_by_it(method):
    crowd = crowd_of()
    more = replace(
        crowd,
        item_ids=pa.concat_arrays([crowd.item_ids, pa.array(["g"])]),
        tokens=pa.concat_arrays([crowd.tokens, pa.array([["w0", "w1"]])]),
    )
    gold = np.full(more.n_tokens, -1, np.int16)
    gold[-2:] = [1, 3]
    result = is_defined(goldspan.aggregate(more, method, gold=more.with_gold(gold)))
    assert result.tags[-1] == ["B-X", "I-X"]
    assert result.confidence[-1] == pytest.approx(1)


@pytest.mark.parametrize("method", [name for name in FITTED if name.startswith("bsc")])
def test_gold_that_contradicts_the_encoding_is_refused_with_the_item(method):
    crowd = oracle.crowd_of(BIO, [{0: [0, 0, 0]}, {0: [0, 0, 0]}], workers=1)
    gold = np.array([-1, -1, -1, 0, 3, -1], np.int16)
    with pytest.raises(InputError, match="item s1: no well-formed BIO sequence"):
        goldspan.aggregate(crowd, method, gold=crowd.with_gold(gold))


def test_gold_whose_items_are_whole_is_made_well_formed_and_counted():
    crowd = oracle.crowd_of(BIO, [{0: [0, 0, 0]}], workers=1)
    known = crowd.with_gold(np.array([0, 3, 3], np.int16))
    result = goldspan.aggregate(crowd, "bsc-cm", gold=known)
    assert result.tags == [["O", "B-X", "I-X"]]
    assert "1 known tags made well-formed" in result.notes


@pytest.mark.parametrize(
    ("types", "tag"),
    [("AXY", "B-A"), ("AXY", "B-Y"), ("XYZ", "B-X"), ("AY", "B-Y"), ("AY", "B-A"), ("X", "B-X")],
)
def test_gold_with_another_tag_set_is_read_by_name(types, tag):
    """The answers, the crowd's own gold and the known truth all have the codes of the result."""
    crowd = oracle.crowd_of(BIO, [{0: [0, 1], 1: [2, 4]}, {0: [1, 3]}], workers=2)
    crowd = crowd.with_gold(np.array([2, -1, 1, 3], np.int16))
    other = Codec.from_types(types, "BIO")
    known = oracle.crowd_of(other, [{0: [0, 1]}, {0: [0, 0]}], workers=1)
    known = known.with_gold(np.array([0, other.tags.index(tag), -1, -1], np.int16))
    result = goldspan.aggregate(crowd, "bsc-cm", gold=known)
    assert result.tags == [["O", tag], ["B-X", "I-X"]]
    assert set(result.tagset.types) == {"X", "Y", *types}
    assert [result.tagset.tags[c] for c in result.crowd.gold if c >= 0] == ["B-Y", "B-X", "I-X"]
    assert result.crowd.answers_of("s0") == crowd.answers_of("s0")
    assert goldspan.score(crowd, result).n_tokens == 3


BAD = [
    {"alpha0": float("nan")}, {"alpha0": 0.05}, {"alpha0": 1e-12}, {"alpha0": "x"},
    {"epsilon0": -1}, {"epsilon0": float("inf")}, {"tol": -1}, {"tol": float("nan")},
    {"tol": 1}, {"max_iter": 0}, {"max_iter": 2.5}, {"truth_prior": float("nan")},
    {"truth_prior": 0}, {"n_starts": 0}, {"prior": "flat"}, {"decode": "best"}, {"tol": "x"},
    {"n_starts": 1.5}, {"random_state": -1}, {"random_state": 0.5}, {"trusted": 12},
    {"trusted": ["w0", 1]}, {"history": "past"}, {"truth_prior": "x"}, {"epsilon0": [1.0]},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_parameter_that_makes_no_sense_is_refused_at_once_or_by_fit_and_predict(bad):
    with pytest.raises(InputError):
        get_aggregator("bsc-seq", **bad)
    aggregator = get_aggregator("bsc-seq").fit(crowd_of())
    aggregator.set_params(**bad)
    with pytest.raises(InputError):
        aggregator.fit(crowd_of())
    with pytest.raises(InputError):
        aggregator.predict(crowd_of())


@pytest.mark.parametrize(
    ("name", "value"), [("at_start", "O"), ("after_skip", None), ("forbidden", 0)]
)
def test_a_parameter_of_sequences_that_makes_no_sense_is_refused_by_its_name(name, value):
    with pytest.raises(InputError, match=name):
        get_aggregator("bsc-cm", **{name: value})
    with pytest.raises(InputError, match=name):
        get_aggregator("bsc-cm").set_params(**{name: value}).fit(crowd_of())


def test_stopping_takes_its_limits():
    assert Stopping(0, 1).max_iter == 1
    crowd = crowd_of()
    one = goldspan.aggregate(crowd, "bsc-cm", max_iter=1)
    assert (len(one.trace), one.stop_reason, one.converged) == (1, "max_iter", False)
    loose = goldspan.aggregate(crowd, "bsc-cm", tol=0.5)
    assert (len(loose.trace), loose.stop_reason, loose.converged) == (2, "tol", True)
