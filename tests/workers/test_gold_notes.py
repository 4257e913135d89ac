"""Gold that does not suit the answers: refused, or said."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from goldspan.workers import find_quality_flags, measure_reliability
from goldspan.workers.reliability import find_truth

ITEMS = [f"q{n}" for n in range(12)]


@pytest.fixture
def crowd():
    rows = [f"{item},{w},{'xy'[n % 2]}" for n, item in enumerate(ITEMS) for w in ("ann", "bob")]
    return read_crowd("\n".join(["task,worker,label", *rows]).encode())


def gold_of(labels: str) -> dict[str, str]:
    return {item: labels[n % len(labels)] for n, item in enumerate(ITEMS)}


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("XY", "labels 'X' (did you mean 'x'?), 'Y' (did you mean 'y'?), and the answers have 'x'"),
        ("z", "the label 'z', and the answers have 'x', 'y'"),
    ],
)
def test_gold_of_which_nobody_gave_any_label_is_refused(crowd, labels, words):
    for judge in (measure_reliability, lambda crowd, gold: find_quality_flags(crowd, gold=gold)):
        with pytest.raises(InputError) as error:
            judge(crowd, gold_of(labels))
        assert words in str(error.value)


def test_one_question_that_all_got_wrong_is_no_other_writing(crowd):
    assert measure_reliability(crowd, {"q0": "z"}).right.tolist() == [0, 0]
    with pytest.raises(InputError, match="did you mean 'x'"):
        measure_reliability(crowd, {"q0": "X"})


def test_a_label_that_nobody_gave_is_said(crowd):
    (note,) = find_truth(crowd, gold_of("xyY"), None).notes
    assert "nobody gave the label 'Y' (did you mean 'y'?) of the gold" in note
    assert "8 answers to 4 items with it are wrong, and guessing" in note
    assert "among 2 + 1 labels" in note
    assert find_truth(crowd, gold_of("xy"), None).notes == ()
    own = crowd.with_gold(np.array([0, 1] * 6, np.int16))
    assert find_truth(own, None, None).notes == ()


def test_known_items_that_nobody_was_shown_are_counted(crowd, tmp_path):
    expected = ("gold for 12 of 12 items; 1 others in ",)
    gold = gold_of("xy") | {"else": "x"}
    assert find_truth(crowd, gold, None).notes == (f"{expected[0]}<mapping>",)
    path = tmp_path / "gold.csv"
    path.write_text("task,label\n" + "".join(f"{k},{v}\n" for k, v in gold.items()))
    (note,) = find_truth(crowd, path, None).notes
    assert note.startswith(expected[0])
    read = read_crowd(crowd_file(crowd, tmp_path), gold=path)
    assert find_truth(read, None, None).notes == (f"{expected[0]}{path}",)
    # What a former gold lacked is no matter any more.
    assert find_truth(read, gold_of("xy"), None).notes == ()


def crowd_file(crowd, folder):
    from goldspan.crowd import write_crowd

    write_crowd(crowd, folder / "answers.csv")
    return folder / "answers.csv"


def test_types_of_spans_are_compared_and_not_their_tags():
    answers = "doc\tsent\ttoken\tann\n" + "".join(f"d\t{n}\tIda\tB-PER\n\n" for n in range(12))
    crowd = read_crowd(answers.encode())
    ids = crowd.item_ids.to_pylist()
    (note,) = find_truth(crowd, {ids[0]: ["B-PER"], ids[1]: ["B-LOC"]}, None).notes
    assert "nobody gave the type 'LOC' of the gold: 1 answers to 1 item with it" in note
    with pytest.raises(InputError, match=r"the type 'per' .did you mean 'PER'"):
        find_truth(crowd, {item: ["B-per"] for item in ids}, None)
    silent = read_crowd(answers.replace("B-PER", "O").encode(), encoding="BIO")
    assert find_truth(silent, {item: ["B-PER"] for item in ids}, None).notes == ()
