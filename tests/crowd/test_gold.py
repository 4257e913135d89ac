"""Gold from a second file, frame or crowd: by id, by order, and what does not fit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from crowd_tables import assert_same, refusal, small, tree, written, zipped
from goldspan.aggregation import aggregate, calibrate
from goldspan.crowd import ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.io import to_crowd
from goldspan.crowd.labels import recode, translate
from goldspan.errors import FormatError, InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.spans import Codec
from goldspan.workers import (
    find_quality_flags,
    measure_reliability,
    replay,
    review_workers,
    select_by_gain,
)

SINGLE = b"task,worker,label\n1,a,x\n1,b,y\n2,a,x\n"
SEQUENCE = b"item,worker,token,label\ns1,a,Ann,B-PER\ns1,a,sang,O\ns2,a,Paris,O\n"
WIDE = b"doc\tsent\ttoken\tA\nD\t1\tAnn\tB-PER\nD\t1\tsang\tO\nD\t2\tParis\tO\n"
KNOWN = {"s1": ["B-PER", "O"], "s2": ["B-LOC"]}


def gold_of(answers, gold, **options):
    return goldspan.read_crowd(answers, gold=gold, **options).tagged_by_id()


def notes_of(answers, gold, **options):
    return goldspan.read_crowd(answers, gold=gold, **options).import_report.notes


# Single labels


@pytest.mark.parametrize(
    "gold",
    [
        b"task,label\n1,x\n2,z\n",
        b"item;gold\n2;z\n1;x\n",
        b"question\ttruth\n1\tx\n2\tz\n3\tz\n",
        b'# by hand\nid,note,answer\n1,"a, b",x\n\n2,,z\n',
        pd.DataFrame({"task": [1, 2], "label": ["x", "z"]}),
        pl.DataFrame({"item": ["1", "2"], "gold": ["x", "z"]}),
        pa.table({"task": [1.0, 2.0], "truth": ["x", "z"]}),
        {1: "x", "2": "z", 3: None},
        {"1": ["x"], "2": {"z"}},
    ],
    ids=["csv", "semicolons", "tabs", "quotes", "pandas", "polars", "arrow", "mapping", "lists"],
)
def test_a_table_of_items_and_labels_is_gold(gold):
    assert gold_of(SINGLE, gold) == {"1": ["x"], "2": ["z"]}


def test_labels_that_nobody_gave_join_the_tag_set():
    crowd = goldspan.read_crowd(SINGLE, gold=b"task,label\n1,z\n")
    assert crowd.tagset.tags == ("x", "y", "z")
    assert crowd.answers_of("1") == {"a": ["x"], "b": ["y"]}


def test_numbers_of_a_frame_with_gaps_are_the_numbers_of_the_answers():
    answers = pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": [0, 1]})
    gold = pd.DataFrame({"task": [1, 2], "label": [0, None]})
    crowd = goldspan.read_crowd(answers, gold=gold)
    assert crowd.tagged_by_id() == {"1": ["0"], "2": [None]}
    assert crowd.tagset.tags == ("0", "1")


@pytest.mark.parametrize("missing", [None, ["-"]])
def test_items_without_gold_stay_unknown_and_are_counted(missing):
    gold = b"task,label\n2,x\n9,y\n"
    assert gold_of(SINGLE, gold, missing=missing) == {"1": [None], "2": ["x"]}
    assert notes_of(SINGLE, gold) == ("gold for 1 of 2 items; 1 others in <bytes>",)


def test_the_names_of_the_users_columns_hold_for_the_gold_too():
    answers = b"aufgabe,wer,was\n1,a,x\n"
    named = {"item": "aufgabe", "worker": "wer", "label": "was"}
    assert gold_of(answers, b"aufgabe,was\n1,y\n", columns=named) == {"1": ["y"]}
    assert gold_of(answers, b"item,gold\n1,y\n", columns=named) == {"1": ["y"]}
    named["gold"] = "wahr"
    table = b"aufgabe,wer,was,wahr\n1,a,x,z\n"
    assert gold_of(table, pd.DataFrame({"aufgabe": [1], "wahr": ["y"]}), columns=named) == {
        "1": ["y"]
    }


def test_labels_of_the_gold_are_renamed_too():
    gold = b"task,label\n1,person\n2,?\n"
    assert gold_of(SINGLE, gold, labels={"person": "x"}) == {"1": ["x"], "2": [None]}


def test_contradictory_gold_is_refused_with_its_line():
    gold = b"# a comment here\ntask,label\n1,x\n\n2,x\n1,y\n"
    refusal(SINGLE, "<bytes> line 6, item 1: gold 'y' where an earlier row has 'x'", gold=gold)


def test_gold_without_its_columns_is_refused_with_those_that_are_there():
    refusal(
        SINGLE,
        "<bytes> line 1: gold needs columns item (or task) and label; the file has a, b",
        gold=b"a,b\n1,2\n",
    )


def test_gold_for_other_items_is_refused():
    refusal(
        SINGLE,
        "<bytes>: none of its 1 items is in the crowd (first: '77')",
        gold=b"task,label\n77,x\n",
    )


def test_a_label_of_the_gold_that_is_no_tag_is_refused_with_its_place():
    gold = b"task,label\n1,B-X\n2,X\n"
    message = refusal(
        b"task,worker,label\n1,a,B-X\n2,a,O\n",
        "<bytes> line 3, item 2",
        "worker gold: tag 'X' is not in BIO",
        gold=gold,
        encoding="BIO",
    )
    assert "--label OLD=NEW" in message


# Sequences

GOLD = {
    "conll": b"# id = s1\nAnn B-PER\nsang O\n\n# id = s2\nParis B-LOC\n",
    "wide": b"item\ttoken\tgold\tA\ns1\tAnn\tB-PER\tQ-X\ns1\tsang\tO\t?\ns2\tParis\tB-LOC\t?\n",
    "long": b"item,token,label\ns1,Ann,B-PER\ns1,sang,O\ns2,Paris,B-LOC\n",
    "positions": b"item,position,token,label\ns1,1,sang,O\ns1,0,Ann,B-PER\ns2,0,Paris,B-LOC\n",
    "pandas": pd.DataFrame(
        {
            "item": ["s1", "s1", "s2"],
            "token": ["Ann", "sang", "Paris"],
            "tag": ["B-PER", "O", "B-LOC"],
        }
    ),
}


@pytest.mark.parametrize("name", GOLD)
def test_gold_of_sequences_may_have_any_format(name):
    assert gold_of(SEQUENCE, GOLD[name]) == KNOWN


def test_gold_may_be_a_folder_an_archive_a_parquet_file_or_a_crowd(tmp_path):
    files = {"gold/D.txt": "Ann B-PER\nsang O\n\nParis B-LOC\n"}
    wanted = {"D-1": ["B-PER", "O"], "D-2": ["B-LOC"]}
    assert gold_of(WIDE, zipped(files)) == wanted
    assert gold_of(WIDE, tree(tmp_path, files)) == wanted
    known = goldspan.read_crowd(zipped(files))
    assert gold_of(WIDE, known) == wanted
    with written(known, "parquet") as (path, _):
        assert gold_of(WIDE, path) == wanted


def test_where_no_id_is_shared_the_order_counts_if_the_tokens_are_the_same():
    gold = b"Ann B-PER\nsang O\n\nParis B-LOC\n"
    assert gold_of(SEQUENCE, gold) == KNOWN
    assert notes_of(SEQUENCE, gold) == ("gold for 2 of 2 items from <bytes>",)


def test_gold_for_some_items_leaves_the_others_unknown():
    gold = b"# id = s2\nParis B-LOC\n\n# id = s7\nx O\n"
    assert gold_of(SEQUENCE, gold) == {"s1": [None, None], "s2": ["B-LOC"]}


@given(st.permutations(range(4)))
def test_by_id_the_order_of_the_gold_does_not_matter(order):
    answers = b"item,worker,token,label\n" + b"".join(b"s%d,a,t%d,O\n" % (n, n) for n in range(4))
    gold = b"\n".join(b"# id = s%d\nt%d %s\n" % (n, n, b"B-X" if n % 2 else b"O") for n in order)
    assert gold_of(answers, gold) == {f"s{n}": ["B-X" if n % 2 else "O"] for n in range(4)}


def test_other_tokens_are_refused_with_the_first_difference():
    gold = b"# id = s1\nAnn B-PER\nsings O\n\n# id = s2\nParis B-LOC\n. O\n"
    message = refusal(
        SEQUENCE,
        "<bytes>, item s1 token 1: the gold has 'sings' where the answers have 'sang'",
        gold=gold,
    )
    assert (
        "item s2 token 1: the gold has '.' where the answers have nothing: both must show"
        in message
    )


def test_gold_that_fits_nowhere_is_refused():
    refusal(
        SEQUENCE,
        "<bytes>: neither its item ids nor its tokens in order are those of the crowd",
        gold=b"x O\n",
    )


def test_a_file_without_gold_is_refused_with_what_it_was_read_as():
    refusal(SEQUENCE, "<bytes>: no item of it has gold labels (read as long)", gold=SEQUENCE)


def test_a_table_without_a_label_is_refused():
    refusal(SINGLE, "<bytes>: no item of it has a label: nothing", gold=b"item,label\n1,\n")


def test_gold_in_another_encoding_is_refused_with_the_way_out():
    gold = b"# id = s1\nAnn S-PER\nsang O\n"
    refusal(
        SEQUENCE,
        "the tags of one side are BIO, those of the other IOBES: convert one of them first",
        gold=gold,
    )


def test_a_gold_file_that_cannot_be_read_is_refused_by_its_own_name(tmp_path):
    refusal(SEQUENCE, f"{tmp_path}/gold.conll: No such file", gold=tmp_path / "gold.conll")
    (tmp_path / "gold.conll").write_bytes(b"a b\n\0 O\n")
    refusal(SEQUENCE, f"{tmp_path}/gold.conll line 2: a NUL byte", gold=tmp_path / "gold.conll")


# Recoding


def test_a_larger_tag_set_changes_no_tag():
    crowd = small(gold=["B-X", None])
    codec = Codec.from_types(["A", "X"])
    larger = recode(crowd, codec)
    assert larger.tagset == codec
    assert larger.answers_of("i") == crowd.answers_of("i")
    assert larger.tagged_by_id() == crowd.tagged_by_id()
    assert recode(crowd, crowd.tagset) is crowd
    assert_same(recode(larger, codec), larger)


def test_codes_are_translated_and_unknown_ones_stay_unknown():
    one, two = Codec.from_types(["X"]), Codec.from_types(["A", "X"])
    codes = np.array([-1, 0, 1, 2], np.int16)
    found = translate(codes, one, two)
    assert [two.tags[c] if c >= 0 else None for c in found] == [None, "O", "B-X", "I-X"]
    assert found.dtype == np.int16


def test_gold_is_attached_to_a_crowd_that_was_read_before():
    crowd = goldspan.read_crowd(SEQUENCE)
    assert attach_gold(crowd, GOLD["conll"], ReadOptions()).tagged_by_id() == KNOWN
    with pytest.raises((FormatError, InputError)):
        attach_gold(crowd, crowd, ReadOptions())


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "known"), [("web", 2653), ("adult_content2", 333), ("bluebirds", 108)]
)
def test_the_gold_of_real_crowds_is_that_of_the_data_page(data, name, known):
    folder = data / "classification" / name
    crowd = goldspan.read_crowd(next(folder.glob("labels.csv*")), gold=folder / "truth.csv")
    assert (crowd.gold >= 0).sum() == known


# Texts that were cut otherwise


def selected(text, *spans, **fields):
    return (
        json.dumps({"id": "1", "text": text, "label": [list(span) for span in spans], **fields})
        + "\n"
    ).encode()


@pytest.mark.parametrize("encoding", ["BIO", "IOBES", "BILOU", "IOB"])
def test_gold_of_a_text_that_was_cut_otherwise_is_attached_exactly(encoding):
    text = "Donaudampfschiff und Autobahn"
    answers = selected(text, (0, 10, "A"), (21, 25, "B"), user="w")
    gold = selected(text, (5, 16, "A"), (21, 29, "B"))
    crowd = goldspan.read_crowd(answers, encoding=encoding)
    assert crowd.tokens_list == [["Donaudampf", "schiff", "und", "Auto", "bahn"]]
    both = goldspan.read_crowd(answers, encoding=encoding, gold=read_gold(gold, encoding))
    assert both.tokens_list == [["Donau", "dampf", "schiff", "und", "Auto", "bahn"]]
    assert both.token_start.tolist() == [0, 5, 10, 17, 21, 25]
    codec = both.tagset
    said = goldspan.spans.parse(both.answers_of("1")["w"], encoding=codec.encoding)
    known = goldspan.spans.parse(both.tagged_by_id()["1"], encoding=codec.encoding)
    assert said == [("A", 0, 2), ("B", 4, 5)]
    assert known == [("A", 1, 3), ("B", 4, 6)]
    assert goldspan.spans.validate(both.answers_of("1")["w"], encoding=codec.encoding) == []


def read_gold(data, encoding):
    crowd = goldspan.read_crowd(data.replace(b"}", b', "user": "gold"}'), encoding=encoding)
    assert crowd.gold is not None
    return crowd


def test_what_is_aggregated_keeps_its_tokens_whatever_the_gold_cuts():
    text = "Donaudampfschiff und Autobahn"
    crowd = goldspan.read_crowd(selected(text, (0, 10, "A"), user="w"))
    gold = read_gold(selected(text, (5, 16, "A")), "BIO")
    with pytest.raises(FormatError, match="both must show the same tokens"):
        goldspan.aggregate(crowd, "mv-token", gold=gold)


def test_of_a_table_of_answers_the_column_gold_is_the_gold():
    answers = b"task,worker,label,gold\nq1,a,no,yes\nq1,b,yes,yes\nq2,a,no,no\n"
    crowd = goldspan.read_crowd(answers).with_gold(None)
    found = attach_gold(crowd, answers, ReadOptions())
    assert found.labels_of(found.gold).to_pylist() == ["yes", "no"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_single_labels_that_were_written_are_gold(tmp_path, ending):
    answers = b"task,worker,label\nq1,a,no\nq1,b,no\nq2,a,yes\n"
    path = tmp_path / f"gold.{ending}"
    goldspan.aggregate(answers, "mv-token").write(path)
    found = attach_gold(goldspan.read_crowd(answers), path, ReadOptions())
    assert found.labels_of(found.gold).to_pylist() == ["no", "yes"]


# A mapping by item id


def test_tagged_tokens_may_be_known_by_a_mapping():
    found = goldspan.read_crowd(SEQUENCE, gold={"s1": ["B-PER", "O"], "s2": None})
    assert found.tagged_by_id() == {"s1": ["B-PER", "O"], "s2": [None]}
    assert "gold for 1 of 2 items; 0 others in <mapping>" in found.import_report.notes


@pytest.mark.parametrize(("label", "other"), [(True, False), (1, 2), (2.5, 1.0)])
def test_labels_of_a_mapping_are_those_of_the_answers_whatever_they_are(label, other):
    rows = [{"item": n, "worker": w, "label": [label, other][n % 2]} for n in (0, 1) for w in "ab"]
    crowd = goldspan.read_crowd(rows)
    found = goldspan.aggregate(crowd, "ds", gold={0: other})
    assert len(found.tagset.tags) == 2
    assert found.labels == [other, other]
    assert measure_reliability(crowd, {0: other, 1: other}).total.tolist() == [2, 2]
    assert measure_reliability(crowd, {0: other, 1: other}).n_labels == 2


@pytest.mark.parametrize(
    ("answers", "gold", "words"),
    [
        (SINGLE, {"1": ["x", "y"]}, "gold 'y' where an earlier row has 'x'"),
        (SINGLE, {"7": "x"}, "none of its 1 items is in the crowd"),
        (SINGLE, {"1": None}, "a mapping without known labels"),
        (SINGLE, {"1": "x", "2": 3}, "values of one type"),
        (SEQUENCE, {"s1": ["O"]}, "gold of item 's1' has 1 tags for 2 tokens"),
        (SEQUENCE, {"s7": ["O"]}, "none of its 1 items is in the crowd"),
        (SEQUENCE, {}, "none of its 0 items is in the crowd"),
        (SEQUENCE, {"s1": 3}, "the tags of item 's1' must be a list, not 3"),
    ],
)
def test_a_mapping_that_does_not_suit_is_refused(answers, gold, words):
    with pytest.raises((InputError, FormatError), match=words):
        goldspan.read_crowd(answers, gold=gold)


CALLS = {
    "read_crowd": lambda crowd, gold: to_crowd(crowd, gold=gold).gold.tolist(),
    "aggregate": lambda crowd, gold: aggregate(crowd, "ds", gold=gold).token_probs.tolist(),
    "calibrate": lambda crowd, gold: calibrate(aggregate(crowd, "ds"), gold).token_probs.tolist(),
    "replay": lambda crowd, gold: replay(crowd, gold=gold, rule="fixed(2)").finished_right,
    "measure_reliability": lambda crowd, gold: measure_reliability(crowd, gold).mean.tolist(),
    "find_quality_flags": lambda crowd, gold: find_quality_flags(crowd, gold=gold),
    "review_workers": lambda crowd, gold: review_workers(crowd, gold, method="ds").to_dict(),
    "select_by_gain": lambda crowd, gold: select_by_gain(crowd, gold, budget=2).to_dict(),
}
"""Public calls that take known labels, and what of their results depends on these."""


def simulated(kind: str) -> goldspan.Crowd:
    """Simulate 150 items with gold, of ids 1 to 150: single labels, or two tokens with tags."""
    lines = ["token\tgold"]
    for n in range(150):
        tags = ("B-PER", "O") if n % 3 else ("O", "O")
        lines += [f"{word}\t{tag}" for word, tag in zip(("Ann", "sang"), tags, strict=True)] + [""]
    truth = draw_truth(150, seed=1)
    if kind == "tagged":
        truth = goldspan.read_crowd("\n".join(lines).encode(), format="wide")
    else:
        truth = replace(truth, item_ids=pa.array([str(n + 1) for n in range(150)]))
    return simulate_crowd(truth, ["flip(0.2) x2", "flip(0.3)", "copier(w1)"], seed=1)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["single", "tagged"])
def test_every_call_takes_the_same_mappings(name, kind):
    """Ids may be numbers, tags any sequence, and what is None is not known."""
    crowd = simulated(kind)
    known = dict(list(crowd.tagged_by_id().items())[:-1])
    plain = {item: tags if kind == "tagged" else tags[0] for item, tags in known.items()}
    other = {int(item): np.array(tags) for item, tags in known.items()} | {150: None}
    bare, told = crowd.with_gold(None), CALLS[name]
    assert told(bare, plain) == told(bare, other)
    assert told(bare, plain) != told(bare, dict.fromkeys(plain, plain["2"]))


@pytest.mark.parametrize("name", CALLS)
def test_every_call_refuses_tags_that_are_no_list(name):
    with pytest.raises(InputError, match="the tags of item '1' must be a list, not 'O O'"):
        CALLS[name](simulated("tagged").with_gold(None), {1: "O O"})
