import numpy as np
import pytest
from scipy.special import expit

from goldspan.workers.difficulty import MISLEADING, SPREAD, JudgedAnswers, Sampler


def _answers(n_workers, n_items, n_labels, spread, *, seed=0, twist=0.0):
    rng = np.random.default_rng(seed)
    ability = rng.normal(1.2, 0.8, n_workers)
    label = rng.integers(0, n_labels, n_items)
    own = rng.normal(0, twist, (n_workers, n_labels))
    difficulty = rng.normal(0, 1, n_items)
    difficulty *= spread / difficulty.std()
    odds = ability[:, None] + own[:, label] - difficulty
    right = rng.random((n_workers, n_items)) < expit(odds)
    worker, item = np.divmod(np.arange(n_workers * n_items), n_items)
    answers = JudgedAnswers(worker, item, right.ravel(), label, n_workers, n_labels)
    return answers, ability[:, None] + own


def _run(answers, sweeps=500, warm_up=150):
    sampler, kept = Sampler(answers, np.random.default_rng(1)), []
    for sweep in range(sweeps):
        sampler.sweep()
        if sweep >= warm_up:
            twist = sampler.twist.value.reshape(-1, answers.n_labels)
            odds = sampler.ability.value[:, None] + twist
            blocks = (sampler.ability, sampler.twist, sampler.difficulty)
            spreads = [block.spread for block in blocks]
            kept.append((odds, np.array([*spreads, sampler.misleading])))
    return sampler, np.stack([odds for odds, _ in kept]), np.stack([one for _, one in kept])


@pytest.mark.parametrize("spread", [0.4, 2.0])
def test_the_spread_of_the_items_is_found(spread):
    answers, _ = _answers(20, 80, 2, spread)
    low, high = np.quantile(_run(answers)[2][:, 2], [0.005, 0.995])
    assert low < spread < high
    assert high - low < 1.5


def test_abilities_lie_within_their_intervals_as_often_as_they_should():
    answers, true = _answers(30, 40, 2, 1.0, twist=0.7)
    low, high = np.quantile(_run(answers)[1], [0.05, 0.95], axis=0)
    assert 0.8 < ((low < true) & (true < high)).mean() < 0.98


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("right", [[False, False, True], [False, False, False], [True, True, True]])
def test_difficulty_and_misleading_are_drawn_as_integration_says(right, n_labels):
    ability, spread, share, n_items = np.array([0.5, 1.5, 2.5]), 1.3, 0.2, 3000
    at = np.linspace(-12, 12, 4001)
    prior = np.exp(-(at**2) / (2 * spread**2))
    usual, misled = (1 - share) * prior, share * prior
    for one, own in zip(right, ability, strict=True):
        chance, turned = expit(own - at), expit(at - own) / (n_labels - 1)
        usual = usual * (chance if one else 1 - chance)
        misled = misled * (turned if one else 1 - turned)
    mass = usual.sum() + misled.sum()
    # As many items alike, so that one chain holds many draws.
    worker, item = np.tile(np.arange(3), n_items), np.repeat(np.arange(n_items), 3)
    labels = np.zeros(n_items, np.int64)
    answers = JudgedAnswers(worker, item, np.tile(right, n_items), labels, 3, n_labels)
    sampler = Sampler(answers, np.random.default_rng(0))
    sampler.log_odds += ability[worker] - sampler.ability.value[worker]
    sampler.ability.value[:], sampler.difficulty.spread, sampler.misleading = ability, spread, share
    sampler._likelihood = sampler._log_likelihood(sampler.log_odds, sampler.misled)
    found = []
    for sweep in range(60):
        sampler._move(sampler.difficulty)
        sampler._turn(fresh=False)
        sampler._turn(fresh=True)
        if sweep >= 20:
            found.append((sampler.misled.mean(), sampler.difficulty.value.mean()))
    drawn = np.mean(found, axis=0)
    assert drawn[0] == pytest.approx(misled.sum() / mass, abs=0.01)
    assert drawn[1] == pytest.approx((at * (usual + misled)).sum() / mass, abs=0.05)


def test_the_spread_does_not_stay_where_it_is_though_items_have_few_answers():
    answers, _ = _answers(4, 60, 2, 1.0)
    spread = _run(answers, sweeps=700, warm_up=100)[2][:, 2]
    away = spread - spread.mean()
    assert (away[15:] * away[:-15]).mean() / away.var() < 0.5


def test_without_any_answer_everything_is_drawn_from_its_prior():
    none = np.zeros(0, np.int64)
    answers = JudgedAnswers(none, none, none.astype(bool), np.zeros(1, np.int64), 2, 2)
    *spreads, misleading = _run(answers, sweeps=1500, warm_up=0)[2].mean(axis=0)
    # The mean of a half-normal number of scale s is s √(2/π).
    assert np.array(spreads) == pytest.approx(
        np.array(list(SPREAD.values())) * np.sqrt(2 / np.pi), rel=0.3
    )
    assert misleading == pytest.approx(MISLEADING[0] / sum(MISLEADING), abs=0.01)


def test_the_log_odds_that_are_carried_along_are_those_of_the_parameters():
    answers, _ = _answers(8, 30, 3, 1.0)
    sampler, _, _ = _run(answers, sweeps=50, warm_up=0)
    cell = answers.worker * 3 + answers.label[answers.item]
    odds = sampler.ability.value[answers.worker] + sampler.twist.value[cell]
    odds -= sampler.difficulty.value[answers.item]
    assert sampler.log_odds == pytest.approx(odds, abs=1e-9)
