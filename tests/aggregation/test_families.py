"""Families of workers who err together: found, weighed, and heeded by the methods."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goldspan
from goldspan.aggregation.bsc.evidence import compress, discounted, lay_out, weighed
from goldspan.aggregation.families import (
    CAUTION,
    Families,
    _within,
    families_for,
    find_families,
    given_families,
    read_families,
)
from goldspan.aggregation.families.finding import pair_agreements
from goldspan.aggregation.weighted import TokenLabels
from goldspan.crowd import Crowd
from goldspan.errors import FormatError, InputError
from goldspan.simulation import draw_truth, simulate_crowd

WIDE = b"""token\ta\tb\tc\td
Rome\tB-LOC\tB-LOC\tO\tO
wins\tO\tO\tO\tO

Ann\tB-PER\t?\tO\tB-LOC
in\tO\t?\tO\tO
Oslo\tB-LOC\tB-LOC\tB-LOC\tO
"""


def simulated(
    rho: float, *, seed: int = 0, n_workers: int = 12, members: int = 3, n_items: int = 400
) -> tuple[Crowd, np.ndarray, dict[str, str]]:
    """Make single labels of workers of whom the first err together."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n_items)

    def draw(right: float) -> np.ndarray:
        wrong = (truth + rng.integers(1, 4, size=n_items)) % 4
        return np.where(rng.random(n_items) < right, truth, wrong)

    common = draw(0.55)
    rows = []
    for w in range(n_workers):
        alike = rng.random(n_items) < np.sqrt(rho)
        given = np.where(alike, common, draw(0.55)) if w < members else draw(0.6 + 0.02 * w)
        rows += [
            {"task": i, "worker": f"w{w:02d}", "label": "abcd"[x]} for i, x in enumerate(given)
        ]
    return goldspan.read_crowd(rows), truth, {f"w{w:02d}": "kin" for w in range(members)}


def brute_weights(crowd: Crowd, families: Families, *, by_token: bool) -> list[float]:
    """Count the members of every label's family one by one."""
    answers, found = crowd.latest, []
    cells = [
        (a, i)
        for a in range(len(answers))
        for i in range(answers.offset[a + 1] - answers.offset[a])
    ]
    for a, i in cells:
        if answers.codes[answers.offset[a] + i] < 0:
            found.append(0.0)
            continue
        own = families.number[answers.worker[a]]
        n = sum(
            families.number[answers.worker[b]] == own
            and (not by_token or answers.codes[answers.offset[b] + i] >= 0)
            for b in range(len(answers))
            if answers.item[b] == answers.item[a]
        )
        found.append(1 / (1 + (n - 1) * families.rho[own]))
    return found


@pytest.fixture(name="crowd")
def _crowd() -> Crowd:
    return goldspan.read_crowd(WIDE, format="wide")


@pytest.fixture(name="families")
def _families(crowd) -> Families:
    return Families(np.array([0, 0, 1, 0]), np.array([0.4, 0.0]), crowd.worker_ids)


def test_weights_are_those_counted_one_by_one(crowd, families):
    labels = families.label_weights(crowd)
    np.testing.assert_allclose(labels, brute_weights(crowd, families, by_token=True))
    answers = np.repeat(families.answer_weights(crowd), crowd.latest.lengths)
    given_ = crowd.latest.codes >= 0
    counted = np.array(brute_weights(crowd, families, by_token=False))
    np.testing.assert_allclose(answers[given_], counted[given_])


@pytest.mark.parametrize("has_memory", [False, True])
def test_the_engine_multiplies_powers_of_what_the_labels_say(crowd, families, has_memory):
    evidence, rows = lay_out(crowd, has_memory=has_memory)
    evidence = weighed(evidence, rows, families)
    rng = np.random.default_rng(1)
    logs = rng.normal(size=(len(rows), rows.n_labels))
    from goldspan.aggregation.bsc.evidence import Tables

    tables = Tables(logs, np.exp(logs), np.ones((1, rows.n_labels)), np.ones(rows.n_labels))
    (shard,) = compress([evidence], len(rows))
    for dependence in (0.0, 0.5):
        own = discounted(shard, len(rows), dependence) if dependence else shard
        local, _ = own.localise(tables)
        for token in range(crowd.n_tokens):
            entries = slice(*evidence.bounds[token : token + 2])
            who = rows.worker[evidence.row[entries]]
            n = {w: sum(families.number[who] == families.number[w]) for w in who}
            weight = [1 / (1 + (n[w] - 1) * families.rho[families.number[w]]) for w in who]
            power = 1 / (1 + max(sum(weight) - 1, 0) * dependence)
            expected = power * (np.array(weight) @ logs[evidence.row[entries]])
            found = local.log_table[shard.row[token]]
            np.testing.assert_allclose(found - found.max(), expected - expected.max(), atol=1e-12)


def test_ballots_sum_by_weights_at_tokens_and_whole_by_workers(crowd, families):
    token_labels = TokenLabels.of(crowd, None, families)
    plain = TokenLabels.of(crowd)
    given_ = crowd.latest.codes >= 0
    np.testing.assert_allclose(token_labels.share, families.label_weights(crowd)[given_])
    assert token_labels.sums().sum() == pytest.approx(token_labels.share.sum())
    np.testing.assert_array_equal(token_labels.per_worker(None), plain.per_worker(None))
    np.testing.assert_array_equal(token_labels.voted, plain.voted)


def test_agreement_is_chance_corrected():
    crowd, _, _ = simulated(0.5)
    pairs = pair_agreements(crowd)[0]
    answers = crowd.latest
    table = np.empty((crowd.n_items, crowd.n_workers), int)
    table[answers.item, answers.worker] = answers.codes
    assert len(pairs) == 66
    for n, (i, j) in enumerate(zip(pairs.left, pairs.right, strict=True)):
        one, two = np.eye(4)[table[:, i]], np.eye(4)[table[:, j]]
        one, two = one - one.mean(axis=0), two - two.mean(axis=0)
        k = (one * two).sum() / np.sqrt((one**2).sum() * (two**2).sum())
        assert pairs.agreement[n] == pytest.approx(k)


def test_standard_errors_are_those_of_the_jackknife():
    crowd, _, _ = simulated(0.5, n_workers=2, members=1)
    pairs = pair_agreements(crowd)[0]
    answers = crowd.latest
    table = np.empty((crowd.n_items, 2), int)
    table[answers.item, answers.worker] = answers.codes

    def agreement(rows):
        one, two = (np.eye(4)[rows[:, w]] for w in range(2))
        one, two = one - one.mean(axis=0), two - two.mean(axis=0)
        return (one * two).sum() / np.sqrt((one**2).sum() * (two**2).sum())

    n = crowd.n_items
    without = [agreement(np.delete(table, i, axis=0)) for i in range(n)]
    variance = (n - 1) * np.var(without)
    assert pairs.variance[0] / pairs.blocks[0] == pytest.approx(variance, rel=0.05)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), rho=st.sampled_from([0.6, 1.0]), members=st.integers(2, 4))
def test_families_are_found_and_measured(seed, rho, members):
    crowd, _, kin = simulated(rho, seed=seed, members=members)
    found = find_families(crowd)
    assert set(kin) <= set(found.names())
    assert found.rho[found.number[0]] == pytest.approx(rho, abs=0.15)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16))
def test_next_to_nobody_is_taken_for_a_family_where_there_is_none(seed):
    crowd, _, _ = simulated(0.0, seed=seed)
    assert len(find_families(crowd).names()) <= 2


def test_two_good_workers_among_workers_near_chance_are_no_family():
    """Nobody's accuracy is known from partners who guess: that two agree may be theirs alone."""
    found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth = rng.integers(2, size=100)
        right = np.r_[0.95, 0.95, rng.uniform(0.5, 0.6, 6)]
        given_right = rng.random((100, 8)) < right
        label = np.where(given_right, truth[:, None], 1 - truth[:, None])
        rows = [
            {"task": f"{i}", "worker": f"w{w}", "label": "ny"[label[i, w]]}
            for i in range(100)
            for w in range(8)
        ]
        found += bool(find_families(goldspan.read_crowd(rows)))
    assert found <= 2  # 6 where partners who guess were taken at their word


def test_no_chain_by_one_link():
    # b is half a copy of a and half one of c, who err independently.
    rng = np.random.default_rng(0)
    crowd, truth, _ = simulated(0.0, n_items=600)
    answers = crowd.latest
    table = np.empty((crowd.n_items, crowd.n_workers), int)
    table[answers.item, answers.worker] = answers.codes
    table[:, 1] = np.where(rng.random(len(truth)) < 0.5, table[:, 0], table[:, 2])
    rows = [
        {"task": i, "worker": f"w{w:02d}", "label": "abcd"[table[i, w]]}
        for i in range(len(table))
        for w in range(table.shape[1])
    ]
    found = find_families(goldspan.read_crowd(rows))
    assert found.number[0] != found.number[2]


@pytest.mark.parametrize("method", ["ds", "mace", "ibcc", "wawa", "glad", "wmv-log"])
def test_copies_change_next_to_nothing(method):
    crowd, truth, _ = simulated(0.0, members=1, n_workers=9)
    answers, ids = crowd.latest, crowd.worker_ids.to_pylist()
    labels = np.array(crowd.tagset.tags)[answers.codes]
    rows = [
        {"task": int(i), "worker": ids[w], "label": x}
        for i, w, x in zip(answers.item, answers.worker, labels, strict=True)
    ]
    copies = [row | {"worker": f"copy{k}"} for row in rows if row["worker"] == "w00" for k in "123"]
    more = goldspan.read_crowd(rows + copies)
    alone = np.array(goldspan.aggregate(crowd, method, families="auto").labels)
    found = np.array(goldspan.aggregate(more, method, families="auto").labels)
    assert np.mean(found != alone) < 0.02
    other = np.array(goldspan.aggregate(more, method, families="none").labels)
    assert np.mean(other == np.array(list("abcd"))[truth]) <= np.mean(
        found == np.array(list("abcd"))[truth]
    )


def test_where_nobody_is_kin_nothing_changes():
    crowd, _, _ = simulated(0.0)
    for method in ("ds", "mv-token", "wawa"):
        auto = goldspan.aggregate(crowd, method, families="auto")
        none = goldspan.aggregate(crowd, method, families="none")
        np.testing.assert_array_equal(auto.token_probs, none.token_probs)
        assert auto.trace == none.trace


@pytest.mark.parametrize("method", ["mv-token", "mv-seq", "mv-seg"])
def test_votes_of_a_given_family_count_as_one_where_nothing_is_known_of_it(method):
    table = b"token\ta\tb\tc\td\te\nRome\tB-LOC\tB-LOC\tO\tO\tO\nwins\tO\tO\tO\tO\tO\n"
    crowd = goldspan.read_crowd(table, format="wide")
    assert goldspan.aggregate(crowd, method).tags == [["O", "O"]]
    kin = {"c": "x", "d": "x", "e": "x"}
    found = goldspan.aggregate(crowd, method, families=kin)
    assert found.tags == [["B-LOC", "O"]]
    assert found.span_confidence.tolist() == pytest.approx([2 / 3])
    assert any("c, d, e (rho 1.00, assumed)" in note for note in found.notes)


def test_given_families_are_measured_by_answers_and_by_truth():
    crowd, truth, kin = simulated(0.6, n_items=1000)
    codes = np.array([crowd.tagset.tags.index("abcd"[t]) for t in truth], np.int16)
    by_answers = given_families(crowd, kin)
    by_truth = given_families(crowd, kin, codes)
    assert by_answers.rho[0] == pytest.approx(0.6, abs=0.1)
    assert by_truth.rho[0] == pytest.approx(0.6, abs=0.1)
    assert by_truth.names() == kin
    assert not (by_truth.rho == by_answers.rho).all()


def test_other_crowds_know_them_by_id():
    crowd, _, kin = simulated(1.0)
    families = given_families(crowd, kin)
    rows = [{"task": 0, "worker": w, "label": "a"} for w in ("new", "w02", "w05", "w00")]
    other = families.on(goldspan.read_crowd(rows).worker_ids)
    assert other.names() == {"w00": "kin", "w02": "kin"}
    assert other.sizes.sum() == 4


def test_prediction_knows_the_families_of_the_fit():
    crowd, _, kin = simulated(1.0)
    from goldspan.aggregation import get_aggregator

    method = get_aggregator("ds", families=kin).fit(crowd)
    result = method.predict(crowd)
    assert any("err together" in note for note in result.notes)
    assert (result.codes == method.result_.codes).mean() > 0.99


def test_one_member_of_a_family_stays(crowd, families):
    thin = families.thin(crowd)
    left = [(int(i), int(w)) for i, w in zip(thin.latest.item, thin.latest.worker, strict=True)]
    assert sorted(left) == [(0, 0), (0, 2), (1, 0), (1, 2)]
    alone = Families(np.arange(4), np.zeros(4), crowd.worker_ids)
    assert alone.thin(crowd) is crowd
    assert not alone


def test_what_families_may_be(crowd):
    with pytest.raises(InputError, match="families must be"):
        goldspan.aggregate(crowd, "ds", families=3)
    assert families_for("none", crowd) is None
    assert families_for({}, crowd) is None
    assert families_for({"a": "x"}, crowd) is None
    stripped = families_for({"a": " x", "b": "x "}, crowd)
    assert stripped is not None
    assert stripped.names() == {"a": "x", "b": "x"}
    with pytest.raises(InputError, match="no worker 'nobody' among the 4"):
        families_for({"a": "x", "nobody": "x"}, crowd)
    for bad in ({"a": ""}, {"": "x"}, {"a": None}, {"a": " "}):
        with pytest.raises(InputError, match="text that is not empty"):
            goldspan.aggregate(crowd, "ds", families=bad)


def test_families_are_read_from_a_file(crowd, tmp_path):
    file = tmp_path / "families.csv"
    file.write_text("\ufeffworker, family,note\na,one,\nb,one,x\n\nc,,\n", encoding="utf-8")
    assert read_families(file) == {"a": "one", "b": "one"}
    by_file = goldspan.aggregate(crowd, "ds", families=str(file))
    by_dict = goldspan.aggregate(crowd, "ds", families={"a": "one", "b": "one"})
    np.testing.assert_array_equal(by_file.token_probs, by_dict.token_probs)
    assert by_file.workers.column("family").to_pylist() == ["one", "one", None, None]
    effective = by_file.workers.column("effective").to_pylist()
    assert effective[0] == effective[1] < 2
    assert effective[2:] == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker,group\na,b\n", "columns worker and family"),
        ("", "the file is empty"),
        ("worker,family\na,one\na,two\n", "in family 'one' already"),
        ("worker,family\n,one\n", "the worker is empty"),
        ("worker,family\na,one,1\n", "3 cells for 2 columns"),
        ("worker,worker,family\na,b,one\n", "once, not worker, worker, family"),
        ("worker,family\na,\na,one\n", "line 3.*in no family already"),
        ("worker,family\na,one\na,\n", "in family 'one' already"),
        ('worker,family\na,one\nb,"x\n', "line 3.*quoted cell is not closed"),
    ],
)
def test_what_is_wrong_with_a_file_of_families_is_said(tmp_path, text, message):
    file = tmp_path / "families.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_families(file)
    with pytest.raises(FormatError, match="no such file"):
        read_families(tmp_path / "other.csv")


def test_families_among_other_workers_keep_names_and_order(crowd):
    kin = given_families(crowd, {"b": "two", "d": "two", "a": "one"})
    other = kin.on(pa.array(["new", "d", "a", "b"]))
    assert other.number.tolist() == [0, 1, 2, 1]
    assert other.names() == {"d": "two", "b": "two"}
    assert other.effective[0] == 1
    assert kin.answer_counts(crowd).tolist() == pytest.approx(
        [2 + kin.effective[1], 2 + kin.effective[1]]
    )


def test_what_may_be_believed_of_families_that_were_found():
    def opinions(rho: float, n_workers: int = 12, members: int = 3) -> list[set[str]]:
        crowd, _, _ = simulated(rho, n_workers=n_workers, members=members)
        found = find_families(crowd)
        assert found
        return [set(one.names()) if one else set() for one in found.opinions(crowd)]

    three = {"w00", "w01", "w02"}
    assert opinions(1.0) == [three]  # copies
    assert opinions(0.65) == [three, set()]  # a minority, which may know more
    assert {"w03", "w04"} <= opinions(0.7, n_workers=10, members=5)[-1]  # half of the answers
    assert opinions(0.3) == [set()]  # weak


def test_a_small_crowd_has_no_families(crowd):
    assert not find_families(crowd)
    for n_workers in (2, 3):
        assert not find_families(simulated(0.0, n_workers=n_workers, members=1)[0])


def test_of_large_crowds_some_items_are_looked_at(monkeypatch):
    crowd, _, _ = simulated(0.5)
    every = pair_agreements(crowd)[0]
    monkeypatch.setattr("goldspan.aggregation.families.finding.MOST_SEEN", 40_000)
    fewer = pair_agreements(crowd)[0]
    assert len(fewer) == len(every)
    assert (fewer.blocks < every.blocks).all()


# --------------------------------------------------------------------------------------------------
# Independent workers whose mistakes depend on the class are no family; true families are found.


def by_class(seed: int, sizes: tuple[int, int, int, int], skill: str) -> Crowd:
    """Draw independent workers with confusion matrices of their own."""
    n_labels, n_workers, per_item, n_items = sizes
    rng = np.random.default_rng([seed, *sizes])
    truth = rng.integers(n_labels, size=n_items)
    rows = []
    school = rng.integers(2, size=n_workers)
    for w in range(n_workers):
        matrix = np.zeros((n_labels, n_labels))
        right = rng.beta(1.5, 0.8, n_labels)
        if skill == "schools":  # either half of the labels is known well
            knows = np.arange(n_labels) % 2 == school[w]
            right = np.where(knows, rng.uniform(0.85, 0.98, n_labels), rng.uniform(0.3, 0.6))
        for j in range(n_labels):
            off = np.arange(n_labels) != j
            matrix[j, off] = (1 - right[j]) * rng.dirichlet(np.full(n_labels - 1, 0.5))
            matrix[j, j] = right[j]
        given_ = (rng.random(n_items)[:, None] > matrix.cumsum(axis=1)[truth]).sum(axis=1)
        rows.append(np.minimum(given_, n_labels - 1))
    asked = rng.random((n_items, n_workers)).argsort(axis=1) < per_item
    return goldspan.read_crowd(
        [
            {"task": i, "worker": f"w{w:02d}", "label": "abcdefgh"[rows[w][i]]}
            for i, w in np.argwhere(asked).tolist()
        ]
    )


@pytest.mark.parametrize("skill", ["schools", "beta"])
def test_mistakes_that_depend_on_the_class_make_no_family(skill):
    shapes = [(2, 10, 5, 800), (3, 8, 8, 800), (5, 12, 6, 1500), (8, 15, 10, 1000)]
    shapes += [(3, 20, 10, 1500), (5, 6, 5, 1000), (3, 5, 3, 600), (4, 20, 5, 2000)]
    accused = [
        (seed, sizes)
        for seed in range(2)
        for sizes in shapes
        if find_families(by_class(seed, sizes, skill))
    ]
    assert accused == []  # by one factor alone most crowds of schools had families


@pytest.mark.parametrize(
    "right",
    [(0.95, 0.9, 0.35), (0.9, 0.9, 0.75), (0.9, 0.9, 0.9, 0.35), (0.9, 0.9, 0.85, 0.35, 0.35)],
)
def test_few_good_workers_among_bad_ones_are_no_family(right):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n_items, n_labels = (300, 100)[seed % 2], (2, 4)[seed // 2 % 2]
        truth = rng.integers(n_labels, size=n_items)
        rows = []
        for w, chance in enumerate(right):
            wrong = (truth + rng.integers(1, n_labels, size=n_items)) % n_labels
            given_ = np.where(rng.random(n_items) < chance, truth, wrong)
            rows += [{"task": i, "worker": w, "label": "abcd"[x]} for i, x in enumerate(given_)]
        assert not find_families(goldspan.read_crowd(rows))


@pytest.mark.parametrize("rho", [0.6, 1.0])
def test_half_of_a_crowd_is_found_and_nobody_else(rho):
    for seed in range(3):
        crowd, _, kin = simulated(rho, seed=seed, n_workers=10, members=5, n_items=500)
        assert set(find_families(crowd).names()) == set(kin)


def test_experts_are_told_from_a_family_by_known_truth():
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=300)
    is_hard = rng.random(300) < 0.4
    rows = []
    for w in range(30):
        said = truth if w < 8 else np.where(is_hard, 1 - truth, truth)
        given_ = np.where(rng.random(300) < (0.88 if w < 8 else 0.75), said, 1 - said)
        rows += [{"task": i, "worker": f"w{w:02d}", "label": "xy"[x]} for i, x in enumerate(given_)]
    copies = [row | {"worker": "copy"} for row in rows if row["worker"] == "w20"]
    crowd = goldspan.read_crowd([*rows, *copies])
    experts = {f"w{w:02d}" for w in range(8)}
    by_answers = families_for("auto", crowd)
    assert by_answers is not None
    assert len(experts & set(by_answers.names())) > 4
    codes = [crowd.tagset.index["xy"[label]] for label in truth]
    known = np.where(np.arange(300) < 150, codes, -1)
    by_truth = families_for("auto", crowd, known.astype(np.int16))
    assert by_truth is not None
    assert not experts & set(by_truth.names())
    assert {"w20", "copy"} <= set(by_truth.names())


def test_always_right_on_a_few_known_answers_is_no_sign_of_copies():
    """Only mistakes tell who errs together; experts hardly make any."""
    truth = draw_truth(300, ["a", "b", "c"], seed=2)
    team = {f"w{n}": "flip(0.03)" for n in range(8)}
    crowd = simulate_crowd(truth, team, seed=3)
    known = np.full(len(crowd.gold_tagged.codes), -1, np.int16)
    known[:12] = crowd.gold_tagged.codes[:12]
    _, rho, error = _within(crowd, np.zeros(crowd.n_workers, np.int64), known)
    weight = 1 / error**2
    assert (rho > 0.9).sum() > 10
    assert (weight[rho > 0.9] < CAUTION).all()
