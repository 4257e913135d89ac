"""Agreement against peers and against plain Python over lists of tags."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from statistics import mean

import krippendorff
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

import goldspan
from crowd_tables import crowd_of, small
from goldspan.crowd import CrowdBuilder, ReadOptions, agreement
from goldspan.crowd.measures import Quartiles, token_accuracy, worker_rates
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans import parse

TAGS = ["O", "O", "B-X", "I-X", "B-Y", "I-Y"]
POLICIES = ["conlleval", "strict", "boundaries"]


@st.composite
def labels(draw, tags=TAGS, gold=False):
    """Answers as lists: one mapping of workers to tags per item, and gold if asked for."""
    cell = st.sampled_from([*tags, None])
    items, known = [], []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 5))
        row = st.lists(cell, min_size=size, max_size=size)
        answers = draw(st.dictionaries(st.sampled_from("abcd"), row, max_size=4))
        items.append(answers or {"a": [tags[0]] * size})
        known.append(draw(row))
    return (items, known) if gold else items


def crowd(items, gold=None, encoding="BIO"):
    return crowd_of(items, gold=gold, encoding=encoding)


def tokens(items):
    """Give the labels of every token by worker."""
    for answers in items:
        size = len(next(iter(answers.values())))
        for n in range(size):
            yield {who: tags[n] for who, tags in answers.items() if tags[n] is not None}


def spans(tags, policy="conlleval"):
    """Read the spans of tags with gaps: no span reaches over a gap."""
    found, run = set(), []
    for place, tag in enumerate([*tags, None]):
        if tag is not None:
            run.append(tag)
            continue
        start = place - len(run)
        found |= {
            (s.type, s.start + start, s.end + start) for s in parse(run, "BIO", policy) if run
        }
        run = []
    return found


def untouched(found, tags):
    """Leave out spans that touch a token without a tag."""
    return {s for s in found if all(tags[n] is not None for n in range(s[1], s[2]))}


def f1(right, predicted, true):
    return 2 * right / (predicted + true) if predicted + true else 0.0


def same(value, wanted):
    return (math.isnan(value) and math.isnan(wanted)) or value == pytest.approx(wanted, abs=1e-9)


# On tokens


@given(labels())
def test_alpha_is_that_of_the_krippendorff_package(items):
    rows = list(tokens(items))
    table = [[TAGS.index(row[who]) if who in row else np.nan for row in rows] for who in "abcd"]
    used = {code for row in rows if len(row) > 1 for code in row.values()}
    if len(used) < 2:
        assert math.isnan(agreement(crowd(items)).alpha)
        return
    wanted = krippendorff.alpha(
        reliability_data=np.array(table),
        value_domain=sorted(set(map(TAGS.index, TAGS))),
        level_of_measurement="nominal",
    )
    assert same(agreement(crowd(items)).alpha, wanted)


@given(labels())
def test_cohens_kappa_is_the_mean_of_that_of_scikit_learn(items):
    rows = list(tokens(items))
    found = []
    n_pairs = 0
    for one, two in combinations("abcd", 2):
        both = [(row[one], row[two]) for row in rows if one in row and two in row]
        n_pairs += bool(both)
        if both and len({label for pair in both for label in pair}) > 1:
            found.append(cohen_kappa_score(*zip(*both, strict=True)))
    result = agreement(crowd(items))
    assert same(result.cohen_kappa, mean(found) if found else math.nan)
    assert result.n_pairs == n_pairs


def fleiss(rows):
    """Fleiss' kappa by its definition, in fractions; rows count the labels of a token."""
    rows = [row for row in rows if sum(row.values()) > 1]
    if not rows:
        return math.nan
    shares = []
    total = Counter()
    for row in rows:
        n = sum(row.values())
        shares.append(Fraction(sum(c * (c - 1) for c in row.values()), n * (n - 1)))
        total.update(row)
    n = sum(total.values())
    chance = sum(Fraction(c, n) ** 2 for c in total.values())
    return float((sum(shares) / len(shares) - chance) / (1 - chance)) if chance < 1 else math.nan


@given(labels())
def test_fleiss_kappa_is_that_of_its_definition(items):
    rows = [Counter(row.values()) for row in tokens(items)]
    assert same(agreement(crowd(items)).fleiss_kappa, fleiss(rows))


FLEISS_1971 = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]


@given(labels())
def test_equal_labels_are_a_share_of_all_pairs_of_labels(items):
    pairs = [a == b for row in tokens(items) for a, b in combinations(row.values(), 2)]
    assert same(agreement(crowd(items)).observed, mean(pairs) if pairs else math.nan)


# On spans


def pair_counts(items, policy):
    """Give, per pair of workers with shared items, equal spans and all comparable ones."""
    found = defaultdict(lambda: [0, 0])
    for answers in items:
        for one, two in combinations(sorted(answers), 2):
            mine = untouched(spans(answers[one], policy), answers[two])
            theirs = untouched(spans(answers[two], policy), answers[one])
            found[one, two][0] += len(mine & theirs)
            found[one, two][1] += len(mine) + len(theirs)
    return found


@given(labels(), st.sampled_from(POLICIES))
def test_pairwise_span_f1_is_the_mean_over_pairs_that_have_spans(items, policy):
    counts = pair_counts(items, policy).values()
    wanted = [2 * equal / total for equal, total in counts if total]
    found = agreement(crowd(items), policy=policy)
    assert same(found.pairwise_span_f1, mean(wanted) if wanted else math.nan)
    assert found.policy == policy


@given(labels())
def test_f1_against_the_others_pools_all_pairs_of_a_worker(items):
    pooled = defaultdict(lambda: [0, 0])
    for (one, two), (equal, total) in pair_counts(items, "conlleval").items():
        for who in (one, two):
            pooled[who][0] += 2 * equal
            pooled[who][1] += total
    for row in agreement(crowd(items)).workers.to_pylist():
        equal, total = pooled[row["worker"]]
        assert row["f1_others"] == (pytest.approx(equal / total) if total else None)


@given(labels(gold=True), st.sampled_from(POLICIES))
def test_worker_scores_against_gold_are_those_of_plain_python(both, policy):
    items, gold = both
    known = [[None if t is None else t for t in row] for row in gold]
    assume(any(tag is not None for row in known for tag in row))
    made = crowd(items, gold=known)
    counts = defaultdict(lambda: [0, 0, 0])
    right = defaultdict(list)
    for answers, truth in zip(items, known, strict=True):
        for who, tags in answers.items():
            mine, true = (
                untouched(spans(tags, policy), truth),
                untouched(spans(truth, policy), tags),
            )
            for n, value in enumerate((len(mine & true), len(mine), len(true))):
                counts[who][n] += value
            right[who] += [a == b for a, b in zip(tags, truth, strict=True) if a and b]
    rates = worker_rates(made, made.gold, policy)
    table = {row["worker"]: row for row in agreement(made, policy=policy).workers.to_pylist()}
    accuracy = token_accuracy(made, made.gold).tolist()
    for n, who in enumerate(made.worker_ids.to_pylist()):
        assert [rates[n].n_right, rates[n].n_predicted, rates[n].n_true] == counts[who]
        assert rates[n].f1 == pytest.approx(f1(*counts[who]))
        wanted = f1(*counts[who]) if sum(counts[who][1:]) else None
        assert table[who]["span_f1"] == (None if wanted is None else pytest.approx(wanted))
        assert same(accuracy[n], mean(right[who]) if right[who] else math.nan)
        assert table[who]["token_accuracy"] == (pytest.approx(accuracy[n]) if right[who] else None)


def test_the_answer_that_counts_is_measured():
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    item = builder.add_item("s", ["x"], gold=["B-X"])
    for who, tags in (("a", ["O"]), ("a", ["B-X"]), ("b", ["B-X"])):
        builder.add_answer(item, who, tags)
    found = agreement(builder.build())
    assert found.observed == 1
    assert [row["span_f1"] for row in found.workers.to_pylist()] == [1, 1]
    assert found.quartiles["answers_per_item"].mean == 2


# Plain labels


@given(labels(tags=["p", "q", "r"], gold=True))
def test_plain_labels_have_shares_of_equal_labels_and_no_span_f1(both):
    items, gold = both
    made = crowd(items, gold=gold, encoding="PLAIN")
    found = agreement(made)
    assert found.pairwise_span_f1 is None
    equal = defaultdict(list)
    for row in tokens(items):
        for one, two in combinations(sorted(row), 2):
            for who in (one, two):
                equal[who].append(row[one] == row[two])
    for row in found.workers.to_pylist():
        given_ = equal[row["worker"]]
        assert row["f1_others"] == (pytest.approx(mean(given_)) if given_ else None)
        assert "span_f1" not in row


# The table and the quartiles


def by_hand(values):
    """Quartiles with linear interpolation between the two neighbours."""
    ordered = sorted(values)

    def at(share):
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return [*(at(n / 4) for n in range(5)), mean(ordered)]


def test_quartiles_of_nothing_are_not_numbers():
    assert all(math.isnan(value) for value in Quartiles.of(np.array([])))


@given(labels(gold=True), st.lists(st.sampled_from(["d", "e", None]), min_size=4, max_size=4))
def test_counts_per_worker_item_and_group_are_those_of_the_lists(both, groups):
    items, gold = both
    groups = groups[: len(items)]
    assume(any(groups))
    made = crowd_of(items, gold=gold, groups=groups)
    found = agreement(made)
    of_worker, labels_of, docs_of, workers_of = (
        Counter(),
        Counter(),
        defaultdict(set),
        defaultdict(set),
    )
    for answers, group in zip(items, groups, strict=True):
        for who, tags in answers.items():
            of_worker[who] += 1
            labels_of[who] += sum(tag is not None for tag in tags)
            if group:
                docs_of[who].add(group)
                workers_of[group].add(who)
    for row in found.workers.to_pylist():
        who = row["worker"]
        assert (row["answers"], row["labels"], row["groups"]) == (
            of_worker[who],
            labels_of[who],
            len(docs_of[who]),
        )
    quartiles = {name: list(row) for name, row in found.quartiles.items()}
    assert quartiles["answers_per_worker"] == pytest.approx(by_hand(of_worker.values()))
    assert quartiles["answers_per_item"] == pytest.approx(by_hand([len(a) for a in items]))
    assert quartiles["workers_per_group"] == pytest.approx(
        by_hand([len(workers_of[g]) for g in {*groups} - {None}])
    )
    scores = [row["span_f1"] for row in found.workers.to_pylist() if row["span_f1"] is not None]
    if scores:
        assert quartiles["worker_f1"] == pytest.approx(by_hand(scores))


def test_worker_f1_is_against_gold_else_against_the_others():
    items = [{"a": ["B-X", "O"], "b": ["B-X", "B-X"]}]
    with_gold = agreement(crowd(items, gold=[["O", "B-X"]])).quartiles["worker_f1"]
    assert [with_gold.minimum, with_gold.maximum] == pytest.approx([0, 2 / 3])
    without = agreement(crowd(items)).quartiles["worker_f1"]
    assert [without.minimum, without.maximum] == pytest.approx([2 / 3, 2 / 3])


def test_the_scores_of_single_labels_are_called_what_they_are():
    items = [{"a": ["p"], "b": ["q"], "c": ["q"]}]
    with_gold = agreement(crowd(items, gold=[["q"]], encoding="PLAIN"))
    without = agreement(crowd(items, encoding="PLAIN"))
    for found, name, wanted in ((with_gold, "accuracy", 2 / 3), (without, "agreement", 1 / 3)):
        scores = {key: row for key, row in found.quartiles.items() if key.startswith("worker_")}
        assert list(scores) == [f"worker_{name}"]
        assert scores[f"worker_{name}"].mean == pytest.approx(wanted)
        assert found.to_dict()["quartiles"][f"worker_{name}"]["mean"] == pytest.approx(wanted)
        shown = next(line for line in str(found).splitlines() if line.startswith(f"worker {name}"))
        assert shown.endswith(f"{100 * wanted:9.2f}")


def test_the_result_prints_and_becomes_json():
    found = agreement(crowd([{"a": ["B-X"], "b": ["B-X"]}]))
    text = str(found)
    for part in (
        "policy conlleval, 1 pairs of workers",
        "span F1 (pairwise)  100.00",
        "answers per item",
    ):
        assert part in text
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["alpha"] is None  # one label only: alpha is not defined
    assert told["workers"][0]["worker"] == "a"


def test_without_pairs_nothing_is_defined_and_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = agreement(crowd([{"a": ["B-X", None]}]))
    assert found.n_pairs == 0
    for value in (
        found.alpha,
        found.fleiss_kappa,
        found.cohen_kappa,
        found.observed,
        found.pairwise_span_f1,
    ):
        assert math.isnan(value)
    assert found.workers.column("f1_others").to_pylist() == [None]


def test_an_answer_in_which_all_is_skipped_counts_as_an_answer_of_no_label():
    found = agreement(crowd([{"a": [None, None], "b": ["B-X", "O"]}]))
    assert found.workers.column("answers").to_pylist() == [1, 1]
    assert found.workers.column("labels").to_pylist() == [0, 2]


def test_a_crowd_without_answers_is_refused():
    nobody = small(gold=["B-X", "I-X"]).answers.take(np.zeros(0, np.int64))
    empty = type(small())(
        small().item_ids, small().tokens, pa.array([], pa.string()), small().tagset, nobody
    )
    with pytest.raises(InputError, match="the crowd has no answer: there is nothing to compare"):
        agreement(empty)


def test_an_unknown_policy_is_refused():
    with pytest.raises(
        UnknownNameError, match="unknown policy 'perl': choose from conlleval, strict"
    ):
        agreement(crowd([{"a": ["B-X"], "b": ["O"]}]), policy="perl")


@pytest.mark.realdata
def test_the_crowd_of_paper_000_agrees_as_its_page_says(data):
    made = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    found = agreement(made)
    worker = found.quartiles["worker_f1"]
    assert (round(100 * worker.minimum, 2), round(100 * worker.maximum, 2)) == (17.58, 85.22)
    assert round(found.quartiles["workers_per_group"].mean, 3) == 4.935
    assert found.quartiles["answers_per_worker"].mean == pytest.approx(27990 / 47)
    codes = np.full((47, made.n_tokens), np.nan)
    codes[made.worker_of, made.token_of] = made.latest.codes
    codes[codes < 0] = np.nan
    wanted = krippendorff.alpha(
        reliability_data=codes,
        value_domain=list(range(len(made.tagset.tags))),
        level_of_measurement="nominal",
    )
    assert found.alpha == pytest.approx(wanted)
