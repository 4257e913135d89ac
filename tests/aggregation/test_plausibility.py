"""Signs that a consensus has run away from its answers: against plain counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.plausibility import check_plausibility
from goldspan.spans import parse

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def _well_formed(tags):
    """Let a span that nothing opened begin where it stands."""
    before = "O"
    for tag in tags:
        opened = tag[0] != "I" or before[1:] == tag[1:]
        before = tag if opened else f"B{tag[1:]}"
        yield before


def _made(seed, *, n_items=30, n_workers=5):
    """Make tags of random lengths: some answers are missing."""
    rng = np.random.default_rng(seed)
    rows = ["doc\tsent\ttoken\t" + "\t".join(f"w{w}" for w in range(n_workers))]
    for item in range(n_items):
        length = int(rng.integers(1, 12))
        base = rng.choice(TAGS, length, p=[0.5, 0.15, 0.15, 0.1, 0.1])
        answers = np.where(
            rng.random((n_workers, length)) < 0.85, base, rng.choice(TAGS, (n_workers, length))
        )
        answers = np.array([list(_well_formed(tags)) for tags in answers], object)
        answers[rng.random(n_workers) < 0.3] = "?"
        answers[0, 0] = "O"
        rows += [f"d{item}\t1\tt{n}\t" + "\t".join(answers[:, n]) for n in range(length)]
        rows.append("")
    return goldspan.read_crowd("\n".join(rows).encode())


def _spans(tags):
    return [(s.start, s.end, s.type) for s in parse([t or "O" for t in tags])]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["votes", "noise"])
def test_counts_equal_those_of_plain_loops(seed, how):
    crowd = _made(seed)
    result = goldspan.aggregate(crowd, "mv-token")
    codes = result.codes.copy()
    if how == "noise":
        rng = np.random.default_rng(seed)
        other = rng.integers(len(crowd.tagset.tags), size=len(codes)).astype(np.int16)
        codes = np.where((rng.random(len(codes)) < 0.3) & (codes >= 0), other, codes)
    found = check_plausibility(crowd, codes)
    expected = Counter()
    ours, theirs, answered = [], [], []
    for n, item in enumerate(crowd.item_ids.to_pylist()):
        answers = crowd.answers_of(item)
        answered.append(len(answers))
        begin, end = crowd.offsets[n], crowd.offsets[n + 1]
        chosen = [crowd.tagset.tags[c] if c >= 0 else None for c in codes[begin:end]]
        for place, tag in enumerate(chosen):
            given = [a[place] for a in answers.values() if a[place] is not None]
            if len(given) >= 3 and len(set(given)) == 1:
                expected["unanimous"] += 1
                expected["overruled"] += given[0] != tag
        own = defaultdict(int)
        for answer in answers.values():
            for span in _spans(answer):
                own[span] += 1
                theirs.append(span[1] - span[0])
        for span in _spans(chosen):
            ours.append(span[1] - span[0])
            expected["unsupported"] += span not in own
    assert found.n_unanimous == expected["unanimous"] > 0
    assert found.n_overruled == expected["overruled"]
    assert found.n_spans == len(ours) > 0
    assert found.n_unsupported == expected["unsupported"]
    assert found.longest_span == max(ours)
    assert found.longest_answer == max(theirs)
    assert found.answers_per_item == pytest.approx(np.mean([n for n in answered if n]))
    assert how == "votes" or found.n_overruled > 0


def test_votes_give_no_warning_and_a_run_away_all_three():
    crowd = _made(1, n_items=100)
    votes = goldspan.aggregate(crowd, "mv-token").codes
    code = crowd.tagset.index
    assert check_plausibility(crowd, votes).warnings == []
    one_span = np.full(len(votes), code["I-PER"], np.int16)
    one_span[crowd.offsets[:-1]] = code["B-PER"]
    warnings = check_plausibility(crowd, one_span).warnings
    assert len(warnings) == 2 + (check_plausibility(crowd, one_span).longest_answer < 11)
    assert any("have another label here" in w for w in warnings)
    assert any("given by no annotator" in w for w in warnings)


def test_a_span_longer_than_any_answer_is_named():
    crowd = goldspan.read_crowd(
        b"token\tann\tbob\na\tB-PER\tB-PER\nb\tI-PER\tO\nc\tO\tO\nd\tO\tO\n"
    )
    code = crowd.tagset.index
    codes = np.array([code["B-PER"], *[code["I-PER"]] * 2, code["O"]], np.int16)
    (warning, _) = check_plausibility(crowd, codes).warnings
    assert "has 3 tokens" in warning
    assert "gave has 2" in warning


def test_single_labels_have_no_spans_but_can_be_overruled():
    rows = [
        "task,worker,label",
        *(f"{t},{w},{'yes' if t % 2 else 'no'}" for t in range(9) for w in "abc"),
    ]
    crowd = goldspan.read_crowd("\n".join(rows).encode())
    found = check_plausibility(crowd, np.zeros(9, np.int16))
    assert (found.n_spans, found.longest_span, found.n_unanimous) == (0, 0, 9)
    assert found.n_overruled in {4, 5}
    assert len(found.warnings) == 2
    assert found.answers_per_item == 3.0


def test_single_labels_spread_otherwise_than_the_answers_are_named():
    """Eight of twenty always say one of five labels; one coin believes them, nobody else."""
    rng = np.random.default_rng(0)
    truth, rows = rng.integers(5, size=300), []
    for item, label in enumerate(truth.tolist()):
        for worker in rng.choice(20, 3, replace=False).tolist():
            said = 0 if worker < 8 else label if rng.random() < 0.75 else int(rng.integers(5))
            rows.append({"item": f"i{item}", "worker": f"w{worker}", "label": f"L{said}"})
    crowd = goldspan.read_crowd(rows)
    lost, votes = (goldspan.aggregate(crowd, method) for method in ("one-coin", "mv-token"))
    signs = check_plausibility(crowd, lost.codes)
    labels = np.array(lost.labels)
    answers = Counter(row["label"] for row in rows)
    p = np.array([(labels == f"L{j}").sum() + 1 for j in range(5)]) / 305
    q = np.array([answers[f"L{j}"] / 3 + 1 for j in range(5)]) / 305
    assert signs.drift == pytest.approx((p * np.log(p / q)).sum())
    assert signs.drift > 0.2
    assert signs.drifted == "L0"
    assert f"{signs.drifted_share:.0%} of the items are labelled 'L0'" in lost.warnings[-1]
    assert signs.given_share == pytest.approx(answers["L0"] / 900)
    assert not [one for one in votes.warnings if "are labelled" in one]
    assert check_plausibility(crowd, np.full(300, -1, np.int16)).drift == 0
