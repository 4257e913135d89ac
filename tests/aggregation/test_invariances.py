"""What every aggregator obeys (after Braylan et al. 2024), on a crowd of labels and one of spans.

Workers err alone and are better than chance, so what must hold of a method's model holds of its
result too: no order and no name matters, what all agree on stands, a perfect worker and one more
right answer do no harm, a spammer little, and a declared copy counts as the one that it is.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import get_aggregator, methods
from goldspan.spans import Codec

METHODS = [
    name
    for name in methods()
    if ("+" not in name and name != "ordinal") or name in {"bsc-seq+words", "bsc-seq+crf"}
]
KINDS = {
    "labels": Codec.from_types(["a", "b", "c"], "PLAIN"),
    "spans": Codec.from_types(["X", "Y"], "BIO"),
}
SKILLS = (0.95, 0.9, 0.85, 0.8, 0.75)
SPANS = {"O": ("O",), "X": ("B-X", "I-X"), "Y": ("B-Y",)}
CASES = [(method, kind) for method in METHODS for kind in KINDS]
CASES.remove(("mv-seg", "labels"))  # it needs spans
every_case = pytest.mark.parametrize(("method", "kind"), CASES)


@cache
def world(kind):
    """Return the truth, the answers of every worker by item, and the tokens."""
    rng, codec = np.random.default_rng(7), KINDS[kind]
    truth, tokens = [], []
    for _ in range(60 if kind == "labels" else 40):
        if kind == "labels":
            tags = [str(rng.choice(codec.tags))]
        else:
            tags = [tag for type_ in rng.choice(list(SPANS), 3) for tag in ("O", *SPANS[type_])]
        truth.append([codec.tags.index(tag) for tag in tags])
        tokens.append([f"{tag[-1]}{rng.integers(3)}" for tag in tags])
    items = [{k: _answer(rng, true, skill, codec) for k, skill in enumerate(SKILLS)}
             for true in truth]  # fmt: skip
    return truth, items, tokens


def _answer(rng, true, skill, codec):
    noise = rng.integers(len(codec.tags), size=len(true))
    return np.where(rng.random(len(true)) < skill, true, noise).tolist()


def crowd_of(kind, items, tokens=None):
    n_workers = 1 + max(max(item) for item in items)
    return oracle.crowd_of(KINDS[kind], items, workers=n_workers, tokens=tokens or world(kind)[2])


@cache
def _result(method, kind):
    return goldspan.aggregate(crowd_of(kind, world(kind)[1]), method)


def right(result, kind):
    """Return the share of tokens with the true label."""
    return float((result.codes == np.concatenate(world(kind)[0])).mean())


@every_case
def test_the_order_of_items_and_workers_does_not_matter(method, kind):
    _, items, tokens = world(kind)
    order, workers = np.random.default_rng(1).permutation(len(items)), [3, 0, 4, 1, 2]
    moved = [{workers[k]: codes for k, codes in items[n].items()} for n in order]
    other = goldspan.aggregate(crowd_of(kind, moved, [tokens[n] for n in order]), method)
    one = _result(method, kind)
    lengths = [len(tokens[n]) for n in range(len(items))]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in order])
    if method in {"auto", "bsc-seq+crf"}:  # folds belong to ids, which stay at their places here
        assert (one.codes[places] == other.codes).mean() > 0.97
    else:
        np.testing.assert_array_equal(one.codes[places], other.codes)
        is_loose = "crf" in method or method == "mace"  # starts belong to ids
        atol = 0.02 if is_loose else 2e-6
        np.testing.assert_allclose(one.token_probs[places], other.token_probs, atol=atol)


@every_case
def test_other_names_of_labels_give_the_same_result_under_these_names(method, kind):
    codec, (_, items, _) = KINDS[kind], world(kind)
    swap = [1, 2, 0] if kind == "labels" else [codec.tags.index(tag) for tag in
                                               ("O", "B-Y", "B-X", "I-Y", "I-X")]  # fmt: skip
    renamed = [{k: [swap[c] for c in codes] for k, codes in item.items()} for item in items]
    other = goldspan.aggregate(crowd_of(kind, renamed), method)
    one = _result(method, kind)
    # Equal votes are decided by the order of labels, which the new names change.
    sure = np.sort(one.token_probs, axis=1)
    sure = sure[:, -1] - sure[:, -2] > 0.05
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(np.array(swap)[one.codes][sure], other.codes[sure])
    if method.startswith(("ds", "one-coin", "ibcc", "bsc")) and "crf" not in method:
        np.testing.assert_allclose(one.token_probs, other.token_probs[:, swap], atol=2e-6)


@every_case
def test_what_all_agree_on_stands(method, kind):
    truth = world(kind)[0]
    result = goldspan.aggregate(
        crowd_of(kind, [dict.fromkeys(range(4), true) for true in truth]), method
    )
    assert right(result, kind) == 1.0


@every_case
def test_a_perfect_worker_does_no_harm(method, kind):
    truth, items, _ = world(kind)
    more = [{**item, len(SKILLS): true} for item, true in zip(items, truth, strict=True)]
    result = goldspan.aggregate(crowd_of(kind, more), method)
    assert right(result, kind) >= right(_result(method, kind), kind) - 1e-9


@every_case
@pytest.mark.parametrize("spammer", ["random", "always the same"])
def test_a_spammer_does_little_harm(method, kind, spammer):
    rng, n = np.random.default_rng(3), len(KINDS[kind].tags)
    more = []
    for item in world(kind)[1]:
        length = len(item[0])
        codes = rng.integers(n, size=length).tolist() if spammer == "random" else [0] * length
        more.append({**item, len(SKILLS): codes})
    result = goldspan.aggregate(crowd_of(kind, more), method)
    # Sequences without a span win where all others differ.
    loss = 0.1 if method == "mv-seq" else 0.05
    assert right(result, kind) > right(_result(method, kind), kind) - loss


@every_case
def test_one_more_answer_for_a_result_leaves_it_as_it_is(method, kind):
    items, one = world(kind)[1], _result(method, kind)
    place = 5
    own = one.codes[slice(*one.crowd.offsets[place : place + 2])].tolist()
    more = [{**item, **({len(SKILLS): own} if n == place else {})} for n, item in enumerate(items)]
    result = goldspan.aggregate(crowd_of(kind, more), method)
    assert result.codes[slice(*result.crowd.offsets[place : place + 2])].tolist() == own


@pytest.mark.parametrize(
    ("method", "kind"),
    [case for case in CASES if "families" in get_aggregator(case[0]).parameter_names()],
)
def test_declared_copies_of_a_worker_count_as_one(method, kind):
    items, worst = world(kind)[1], len(SKILLS) - 1
    copied = [item | dict.fromkeys(range(worst + 1, worst + 6), item[worst]) for item in items]
    crowd = crowd_of(kind, copied)
    family = {f"w{k}": "one" for k in range(worst, worst + 6)}
    declared = goldspan.aggregate(crowd, method, families=family)
    alone = goldspan.aggregate(crowd, method, families="none")
    one = right(_result(method, kind), kind)
    assert right(declared, kind) > one - 0.04
    assert right(alone, kind) < right(declared, kind)
