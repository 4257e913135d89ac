"""Names that look alike are told, and merged only when that is asked for."""

from __future__ import annotations

import pytest

import goldspan
from goldspan.errors import FormatError, InputError

ROWS = [
    {"item": "1", "worker": "ann", "label": "Yes"},
    {"item": "1", "worker": "Ann ", "label": "yes"},
    {"item": "1", "worker": "bob", "label": "no"},
    {"item": "2", "worker": "ann", "label": "Yes"},
]


def kinds(data, **options):
    return goldspan.read_crowd(data, **options).import_report.kinds


def messages(data, **options):
    return [fault.message for fault in goldspan.read_crowd(data, **options).import_report.faults]


def test_labels_and_workers_that_look_alike_are_told_with_the_fix_and_not_merged():
    crowd = goldspan.read_crowd(ROWS)
    assert crowd.tagset.tags == ("Yes", "no", "yes")
    assert crowd.worker_ids.to_pylist() == ["ann", "Ann ", "bob"]
    label, worker = (fault.message for fault in crowd.import_report.faults)
    assert label.startswith("labels 'Yes', 'yes' differ only in case")
    assert "labels={'yes': 'Yes'} (--label yes=Yes)" in label
    assert worker.startswith("workers 'ann', 'Ann ' differ only in case")
    assert "rename_workers={'Ann ': 'ann'} (--rename-worker Ann =ann)" in worker
    assert str(crowd.import_report).count("similar-names, the first:") == 1


def test_the_fix_merges_them():
    crowd = goldspan.read_crowd(ROWS, labels={"yes": "Yes"}, rename_workers={"Ann ": "ann"})
    assert crowd.import_report.faults == ()
    assert crowd.tagset.tags == ("Yes", "no")
    assert crowd.worker_ids.to_pylist() == ["ann", "bob"]
    assert sorted(crowd.answers.attempt.tolist()) == [0, 0, 0, 1]
    assert crowd.answers_of("1") == {"ann": ["Yes"], "bob": ["no"]}
    assert "3 workers are 2 after renaming" in crowd.import_report.notes


@pytest.mark.parametrize(("rule", "label"), [("last", "no"), ("first", "yes")])
def test_of_merged_workers_the_answer_counts_that_the_rule_says(rule, label):
    rows = [
        {"item": "1", "worker": "a", "label": "yes"},
        {"item": "1", "worker": "a ", "label": "no"},
    ]
    crowd = goldspan.read_crowd(rows, rename_workers={"a ": "a"}, repeated=rule)
    assert crowd.answers_of("1") == {"a": [label]}


def test_a_worker_to_rename_must_be_there():
    with pytest.raises(InputError, match="there is no worker 'x' to rename: the workers are 'ann'"):
        goldspan.read_crowd(ROWS, rename_workers={"x": "y"})
    with pytest.raises(InputError, match="the new id of a worker is empty"):
        goldspan.read_crowd(ROWS, rename_workers={"bob": ""})


@pytest.mark.parametrize("quoted", ["'A'", '"A"', "“A”", "’A", '="A"', " A "])
def test_strip_takes_off_white_space_and_quotes(quoted):
    rows = [
        {"item": "1", "worker": quoted, "label": quoted},
        {"item": "1", "worker": "A", "label": "A"},
    ]
    assert "similar-names" in kinds(rows)
    assert any("--strip" in message for message in messages(rows))
    crowd = goldspan.read_crowd(rows, strip=True)
    assert crowd.worker_ids.to_pylist() == ["A"]
    assert crowd.tagset.tags == ("A",)
    assert crowd.import_report.faults == ()


def test_names_in_quotes_are_told():
    rows = [{"item": "1", "worker": "“ann”", "label": "x"}]
    assert kinds(rows) == {"quoted-names": 1}


def test_numbers_written_in_two_ways_are_told():
    rows = [
        {"item": "1", "worker": "7", "label": "1"},
        {"item": "1.0", "worker": "7.0", "label": "1.0"},
    ]
    assert kinds(rows) == {"similar-names": 3}
    assert "items such as '1' and '1.0'" in messages(rows)[-1]


def test_white_space_at_the_ends_of_labels_is_told():
    wide = b"token\tgold\ta\tb\nAnn\tB-PER\tB-PER \tB-PER\nsang\tO\tO\tO\n"
    data = b"item,worker,label\n1,a, x\n1,b,x\n"
    spans = b'{"id":1,"text":"Ann sang","spans":[[0,3,"PER "],[4,8,"PER"]],"worker":"w"}\n'
    for one in (wide, data, spans):
        assert kinds(one) == {"white-space": 1}
    crowd = goldspan.read_crowd(data)
    assert crowd.tagset.tags == ("x",)


def test_types_of_spans_are_compared_without_their_prefixes():
    spans = b'{"id":1,"text":"Ann sang","spans":[[0,3,"Per"],[4,8," PER"]],"worker":"w"}\n'
    (message,) = messages(spans)
    assert "labels ' PER', 'Per' differ only" in message
    crowd = goldspan.read_crowd(spans, strip=True, labels={"Per": "PER"})
    assert crowd.answers_of("1") == {"w": ["B-PER", "B-PER"]}


def test_names_that_look_alike_can_be_refused():
    with pytest.raises(FormatError, match="differ only in case"):
        goldspan.read_crowd(ROWS, strict=True)


def test_names_that_differ_are_not_told():
    rows = [{"item": str(n), "worker": f"w{n}", "label": f"l{n}"} for n in range(30)]
    assert goldspan.read_crowd(rows).import_report.faults == ()
