"""The five worker models (and the two of EM) against dense tables, scipy and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aggregation.bsc import oracle
from goldspan.aggregation.workermodels import (
    MODELS,
    PointAccuracy,
    PointConfusionMatrix,
    Prior,
    Rows,
    get_worker_model,
)

every_model = pytest.mark.parametrize("name", sorted(MODELS))


def apart_of(model, posterior, rows, prior):
    return model.divergence(posterior, rows, prior, model.log_table(posterior, rows))


def rows_of(rng, n_workers, n_previous, n_labels, share=0.6):
    """Draw which (worker, previous, label) occur, sorted; some workers may have none."""
    every = np.argwhere(rng.random((n_workers, n_previous, n_labels)) < share)
    worker, previous, label = every.T
    return Rows(
        worker.astype(np.int32), previous.astype(np.int16), label.astype(np.int16),
        n_workers, n_previous, n_labels,
    )  # fmt: skip


def dense_of(counts, rows):
    """Put counts of rows into a table [K, previous, truth, given]."""
    table = np.zeros((rows.n_workers, rows.n_previous, rows.n_labels, rows.n_labels))
    table[rows.worker, rows.previous, :, rows.label] = counts
    return table


def made(name, seed, *, n_labels=4, prior=None):
    rng = np.random.default_rng(seed)
    model = get_worker_model(name)
    n_previous = n_labels + 1 if model.has_memory else 1
    mask = rng.random((n_previous, n_labels)) < 0.8 if model.has_memory else None
    prior = prior or Prior(0.7, 3.0, mask, 0.02)
    rows = rows_of(rng, 5, n_previous, n_labels)
    counts = rng.gamma(0.5, 3.0, size=(len(rows), n_labels))
    return model, prior, rows, counts


def dense_model(name, prior, n_previous, n):
    allowed = np.ones((n_previous, n), bool) if prior.mask is None else prior.mask
    if name in {"cm", "seq"}:
        return oracle.DenseDirichlet(prior.off, prior.bonus, allowed, prior.forbidden)
    if name == "mace":
        return oracle.DenseMace(prior.off, prior.bonus, n)
    return oracle.DenseBeta(prior.off, prior.bonus, n, pooled=name == "acc")


@every_model
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_labels", [2, 4])
def test_table_and_divergence_equal_those_of_complete_dense_tables(name, seed, n_labels):
    model, prior, rows, counts = made(name, seed, n_labels=n_labels)
    dense = dense_model(name, prior, rows.n_previous, n_labels)
    posterior, last = None, None
    for _ in range(3):
        posterior = model.posterior(counts, rows, prior, posterior)
        last, table, apart = dense.update(dense_of(counts, rows), last)
        wanted = table[rows.worker, rows.previous, :, rows.label]
        np.testing.assert_allclose(model.log_table(posterior, rows), wanted, rtol=0, atol=1e-9)
        assert apart_of(model, posterior, rows, prior) == pytest.approx(apart, abs=1e-9)


@every_model
def test_without_answers_the_posterior_is_the_prior(name):
    model, prior, rows, counts = made(name, 0)
    posterior = model.posterior(np.zeros_like(counts), rows, prior)
    assert apart_of(model, posterior, rows, prior) == pytest.approx(0, abs=1e-12)
    nobody = rows_of(np.random.default_rng(0), 3, 1, 4, share=0)
    posterior = model.posterior(np.zeros((0, 4)), nobody, prior)
    assert apart_of(model, posterior, nobody, prior) == 0
    assert model.log_table(posterior, nobody).shape == (0, 4)


@every_model
def test_one_row_of_a_divergence_equals_an_integral_by_sampling(name):
    """KL = E_q ln q - ln p with scipy's own densities; independent of every formula here."""
    rng = np.random.default_rng(1)
    n, model, prior = 3, get_worker_model(name), Prior(1.5, 4.0)
    n_previous = n if model.has_memory else 1
    rows = Rows(
        np.zeros(n, np.int32), np.zeros(n, np.int16), np.arange(n, dtype=np.int16), 1, n_previous, n
    )
    counts = rng.gamma(2.0, 2.0, size=(n, n))
    posterior = model.posterior(counts, rows, prior)
    table = dense_of(counts, rows)[0, 0]
    total = 0.0
    size = 200_000
    if name in {"cm", "seq"}:
        pairs = [(prior.off + prior.bonus * np.eye(n)[j] + table[j], j) for j in range(n)]
        for alpha, j in pairs:
            draws = np.maximum(rng.dirichlet(alpha, size=size), 1e-300).T
            draws /= draws.sum(axis=0)
            before = stats.dirichlet(prior.off + prior.bonus * np.eye(n)[j])
            total += (stats.dirichlet(alpha).logpdf(draws) - before.logpdf(draws)).mean()
    else:
        if name == "mace":
            knows = (posterior.knows[0], posterior.guesses[0])
            draws = rng.dirichlet(posterior.habit, size=size).T
            draws /= draws.sum(axis=0)
            after, before = stats.dirichlet(posterior.habit), stats.dirichlet([prior.off] * n)
            total += (after.logpdf(draws) - before.logpdf(draws)).mean()
            betas = [knows]
        else:
            betas = zip(posterior.right[0], posterior.wrong[0], strict=True)
        for right, wrong in betas:
            draws = rng.beta(right, wrong, size=size)
            before = stats.beta(prior.off + prior.bonus, (n - 1) * prior.off)
            total += (stats.beta(right, wrong).logpdf(draws) - before.logpdf(draws)).mean()
    assert apart_of(model, posterior, rows, prior) == pytest.approx(total, rel=0.01)


@every_model
@pytest.mark.parametrize("seed", range(3))
def test_posteriors_are_proper_and_tables_are_logarithms_of_less_than_one(name, seed):
    model, prior, rows, counts = made(name, seed)
    posterior = model.posterior(counts, rows, prior)
    for array in model.arrays(posterior).values():
        assert np.isfinite(array).all()
        assert (array > 0).all()
    table = model.log_table(posterior, rows)
    assert np.isfinite(table).all()
    assert (table < 0).all()
    # exp E ln p is less than p: the sum over labels given stays below 1
    total = rows.sum_groups(np.exp(table))
    assert (total < 1).all()


@every_model
@pytest.mark.parametrize("seed", range(3))
def test_expected_confusions_are_distributions_over_labels_given(name, seed):
    model, prior, rows, counts = made(name, seed)
    posterior = model.posterior(counts, rows, prior)
    for worker in range(rows.n_workers):
        mean = model.mean(posterior, rows, prior, worker)
        assert mean.shape == (rows.n_previous, 4, 4)
        assert (mean >= 0).all()
        np.testing.assert_allclose(mean.sum(axis=2), 1, atol=1e-12)


@every_model
def test_expected_confusions_of_plenty_of_counts_are_their_shares(name):
    """Every truth was seen right 3 times of 4, wrong answers alike: all models can say that."""
    n, model, prior = 3, get_worker_model(name), Prior()
    n_previous = n if model.has_memory else 1
    rows = rows_of(np.random.default_rng(0), 1, n_previous, n, share=2)
    shares = np.full((n, n), 0.125) + 0.625 * np.eye(n)
    counts = 1e7 * shares[:, rows.label].T
    posterior = None
    for _ in range(200):
        posterior = model.posterior(counts, rows, prior, posterior)
    mean = model.mean(posterior, rows, prior, 0)
    np.testing.assert_allclose(mean, np.tile(shares, (n_previous, 1, 1)), atol=1e-4)


@every_model
def test_drawn_workers_have_the_mean_of_the_prior(name):
    model, rng = get_worker_model(name), np.random.default_rng(2)
    n, prior = 3, Prior(1.5, 4.0)
    n_previous = n + 1 if model.has_memory else 1
    draws = np.array([model.draw(prior, n_previous, n, rng) for _ in range(4000)])
    np.testing.assert_allclose(draws.sum(axis=3), 1, atol=1e-12)
    if name in {"cm", "seq"}:
        alpha = 1.5 + 4.0 * np.eye(n)
        wanted = alpha / alpha.sum(axis=1, keepdims=True)
    else:
        right = 5.5 / (5.5 + 2 * 1.5)
        if name == "mace":
            wanted = right * np.eye(n) + (1 - right) / n
        else:
            wanted = np.full((n, n), (1 - right) / 2) + (right - (1 - right) / 2) * np.eye(n)
    np.testing.assert_allclose(draws.mean(axis=0), np.tile(wanted, (n_previous, 1, 1)), atol=0.015)
    rows = rows_of(rng, 1, n_previous, n, share=2)
    before = model.posterior(np.zeros((len(rows), n)), rows, prior)
    mean = model.mean(before, rows, prior, 0)
    np.testing.assert_allclose(mean, np.tile(wanted, (n_previous, 1, 1)), atol=1e-12)


def test_draws_differ_where_the_model_says_so():
    rng, prior = np.random.default_rng(3), Prior(1.0, 1.0)
    acc = get_worker_model("acc").draw(prior, 1, 4, rng)[0]
    assert len(set(np.diag(acc).round(12))) == 1
    cv = get_worker_model("cv").draw(prior, 1, 4, rng)[0]
    assert len(set(np.diag(cv).round(12))) == 4
    assert len(set(cv[0, 1:].round(12))) == 1
    seq = get_worker_model("seq").draw(prior, 5, 4, rng)
    assert not np.allclose(seq[0], seq[1])


@every_model
@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_table_of_plenty_of_counts_is_the_logarithm_of_the_mean(name, n_labels):
    """With very many counts the expected logarithm is the logarithm of the mean."""
    model = get_worker_model(name)
    n_previous = 1
    rows = rows_of(np.random.default_rng(4), 1, n_previous, n_labels, share=2)
    counts = 1e8 * np.full((n_labels, n_labels), 0.1 / n_labels)
    counts += 0.9e8 * np.eye(n_labels)
    posterior = None
    for _ in range(300):
        posterior = model.posterior(counts, rows, Prior(), posterior)
    mean = model.mean(posterior, rows, Prior(), 0)[0]
    table = model.log_table(posterior, rows)
    np.testing.assert_allclose(table, np.log(mean).T[rows.label], atol=1e-5)


@every_model
def test_arrays_of_a_posterior_make_the_same_posterior(name):
    model, prior, rows, counts = made(name, 7)
    posterior = model.posterior(counts, rows, prior)
    again = model.restore({key: value.copy() for key, value in model.arrays(posterior).items()})
    np.testing.assert_array_equal(model.log_table(again, rows), model.log_table(posterior, rows))


@every_model
def test_history_counts_like_answers(name):
    model, prior, rows, counts = made(name, 8)
    remembered = np.random.default_rng(9).gamma(0.5, 3.0, size=counts.shape)
    with_past = Prior(prior.off, prior.bonus, prior.mask, prior.forbidden, None, remembered)
    one = model.posterior(counts, rows, with_past)
    two = model.posterior(counts + remembered, rows, prior)
    for key, value in model.arrays(two).items():
        np.testing.assert_allclose(model.arrays(one)[key], value, rtol=1e-12)


@every_model
def test_a_bonus_of_his_own_belongs_to_its_worker(name):
    model, prior, rows, counts = made(name, 10)
    bonus = np.full(5, prior.bonus)
    bonus[2] += 100
    trusted = Prior(prior.off, bonus, prior.mask, prior.forbidden)
    plain = model.log_table(model.posterior(counts, rows, prior), rows)
    found = model.log_table(model.posterior(counts, rows, trusted), rows)
    changed = (plain != found).any(axis=1)
    assert (rows.worker[changed] == 2).all()
    assert changed.any()


@pytest.mark.parametrize("model", [PointConfusionMatrix(), PointAccuracy()])
@pytest.mark.parametrize("seed", range(3))
def test_points_are_shares_of_smoothed_counts_and_change_by_minus_the_log_prior(model, seed):
    rng = np.random.default_rng(seed)
    n, prior = 3, Prior(0.5, 2.0)
    rows = rows_of(rng, 4, 1, n)
    values = []
    for _ in range(2):
        counts = rng.gamma(0.5, 3.0, size=(len(rows), n))
        posterior = model.posterior(counts, rows, prior)
        dense = dense_of(counts, rows)[:, 0]
        if isinstance(model, PointConfusionMatrix):
            alpha = dense + 0.5 + 2.0 * np.eye(n)
            share = alpha / alpha.sum(axis=2, keepdims=True)
            log_prior = ((0.5 + 2.0 * np.eye(n)) * np.log(share)).sum()
        else:
            hits = dense[:, np.arange(n), np.arange(n)].sum(axis=1)
            right = 2.5 + hits
            wrong = 2 * 0.5 + dense.sum(axis=(1, 2)) - hits
            p = right / (right + wrong)
            share = np.tile(((1 - p) / 2)[:, None, None], (1, n, n))
            share[:, np.arange(n), np.arange(n)] = p[:, None]
            log_prior = (2.5 * np.log(p) + 1.0 * np.log(1 - p)).sum()
        wanted = np.log(share)[rows.worker, :, rows.label]
        np.testing.assert_allclose(model.log_table(posterior, rows), wanted, atol=1e-12)
        values.append((apart_of(model, posterior, rows, prior), -log_prior))
    (a, b), (c, d) = values
    assert a - c == pytest.approx(b - d, abs=1e-9)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(0, 10**6))
def test_sums_over_groups_and_workers_equal_loops(n_workers, n_previous, n_labels, seed):
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, n_workers, n_previous, n_labels)
    values = rng.normal(size=(len(rows), n_labels))
    by_worker = np.zeros((n_workers, n_labels))
    groups: dict[tuple[int, int], np.ndarray] = {}
    for at in range(len(rows)):
        by_worker[rows.worker[at]] += values[at]
        key = (int(rows.worker[at]), int(rows.previous[at]))
        groups[key] = groups.get(key, 0) + values[at]
        assert rows.at_label(values)[at] == values[at, rows.label[at]]
    np.testing.assert_allclose(rows.sum_workers(values), by_worker, atol=1e-12)
    found = rows.sum_groups(values)
    assert len(found) == len(groups)
    keys = zip(rows.group_worker.tolist(), rows.group_previous.tolist(), strict=True)
    assert list(keys) == list(groups)
    for row, wanted in zip(found, groups.values(), strict=True):
        np.testing.assert_allclose(row, wanted, atol=1e-12)
    for worker in range(n_workers):
        own = np.zeros(len(rows), bool)
        own[rows.of_worker(worker)] = True
        np.testing.assert_array_equal(own, rows.worker == worker)


def test_the_priors_of_a_group_are_the_sum_over_all_its_labels():
    rng = np.random.default_rng(11)
    mask = rng.random((3, 4)) < 0.6
    rows = rows_of(rng, 5, 3, 4)
    every = rows_of(rng, 5, 3, 4, share=2)
    for prior in (
        Prior(0.4, 2.0, mask, 0.01),
        Prior(0.4, np.arange(5.0), mask, 0.01),
        Prior(0.4, 2.0),
        Prior(base=rng.gamma(1.0, size=(3, 4, 4))),
    ):
        totals = every.sum_groups(prior.of_rows(every)).reshape(5, 3, 4)
        found = prior.of_groups(rows)
        np.testing.assert_allclose(found, totals[rows.group_worker, rows.group_previous])


@every_model
def test_models_are_made_by_name(name):
    assert get_worker_model(name).name == name
    assert get_worker_model(name).has_memory == (name == "seq")


@every_model
def test_a_single_label_leaves_nothing_to_learn(name):
    model, prior = get_worker_model(name), Prior()
    rows = Rows(np.zeros(1, np.int32), np.zeros(1, np.int16), np.zeros(1, np.int16), 1, 1, 1)
    posterior = model.posterior(np.array([[7.0]]), rows, prior)
    assert np.isfinite(model.log_table(posterior, rows)).all()
    assert np.isfinite(apart_of(model, posterior, rows, prior))
    np.testing.assert_allclose(model.mean(posterior, rows, prior, 0), [[[1.0]]])
