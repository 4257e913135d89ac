"""What results show in a notebook, and what they are as pandas DataFrames."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.errors import MissingExtraError
from goldspan.spans import tokenize
from goldspan.spans.notebook import MOST_CHARACTERS, MOST_ITEMS, MarkedSpan, marked

EVIL = "<script>alert('x')</script>&amp;"


class _Read(HTMLParser):
    """Takes HTML apart, and fails where tags are not closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.marks = [], [], "", []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "mark" in self.open:
            self.marks[-1] += data


def read(shown):
    return _Read(shown._repr_html_())


def crowd_of_texts(*texts, labels=("PER", "LOC"), spans=((0, 1), (-1, None)), gold=False):
    builder = CrowdBuilder()
    for n, text in enumerate(texts):
        bounds = tokenize(text)
        tags = ["O"] * len(bounds)
        for label, (start, end) in zip(labels, spans, strict=True):
            for i, at in enumerate(range(len(tags))[start:end]):
                tags[at] = f"{'I' if i else 'B'}-{label}"
        item = builder.add_item(
            f"{EVIL}{n}",
            [text[a:b] for a, b in bounds],
            text=text,
            token_start=[a for a, _ in bounds],
            gold=tags if gold else None,
        )
        for worker in (EVIL, "bob"):
            builder.add_answer(item, worker, tags)
    return builder.build()


@pytest.fixture(scope="module")
def example(root):
    return goldspan.aggregate(root / "examples" / "crowd.tsv", "mv-token")


def test_spans_become_rows_with_their_text_and_characters():
    texts = ["Ann  visited\tParis", "Zoë’s trip to 京都", "👩🏽‍🚀 flew to Rome"]
    frame = goldspan.aggregate(crowd_of_texts(*texts), "mv-token").to_pandas()
    assert list(frame.columns) == [
        *("item", "start", "end", "type", "text", "start_char", "end_char", "confidence")
    ]
    assert len(frame) == 6
    for row in frame.itertuples():
        text = texts[int(row.item[-1])]
        assert text[row.start_char : row.end_char] == row.text
    assert frame["type"].tolist() == ["PER", "LOC"] * 3
    assert frame["text"].tolist()[1] == "Paris"
    assert (frame["confidence"] == 1).all()


def test_spans_without_an_original_text_show_their_tokens_and_no_characters(example):
    frame = example.to_pandas()
    assert len(frame) == example.spans.num_rows
    row = frame.iloc[0]
    tokens = example.crowd.tokens_list[example.crowd.item_index(row["item"])]
    assert row["text"] == " ".join(tokens[row["start"] : row["end"]])
    assert frame["start_char"].isna().all()
    assert frame["end_char"].isna().all()


def test_a_result_without_spans_is_a_frame_with_the_same_columns():
    frame = goldspan.aggregate(b"token\tann\nsang\tO\n", "mv-token", encoding="BIO").to_pandas()
    assert len(frame) == 0
    assert "start_char" in frame.columns


def test_single_labels_become_rows_of_items():
    data = b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,?\n"
    frame = goldspan.aggregate(data, "mv-token").to_pandas()
    assert frame.drop(columns="confidence").to_dict("records")[0] == {"item": "1", "label": "x"}
    assert frame["label"].isna().tolist() == [False, True]
    assert frame["confidence"].tolist() == pytest.approx([2 / 3, 0])


def test_the_texts_of_single_labels_stand_beside_them():
    data = b"task,worker,label,text\n1,a,x,It rained.\n2,a,y,\n"
    frame = goldspan.aggregate(data, "mv-token").to_pandas()
    assert list(frame.columns) == ["item", "text", "label", "confidence"]
    assert frame["text"].tolist()[0] == "It rained."
    assert frame["text"].isna().tolist() == [False, True]


def test_what_a_method_says_of_items_stands_in_the_frame():
    frame = goldspan.aggregate(
        b"task,worker,label\n1,a,x\n1,b,x\n2,a,x\n2,b,y\n", "glad"
    ).to_pandas()
    easy, hard = frame["difficulty"].tolist()
    assert easy < hard
    assert list(frame.columns) == ["item", "label", "confidence", "difficulty"]


@pytest.mark.parametrize(
    "data",
    [
        b"task,worker,label,gold\n1,a,x,x\n1,b,y,x\n2,a,y,?\n",
        b"item,worker,label,attempt,started,cost\n1,a,x,0,5,7\n1,a,y,1,9,\n2,a,y,0,,3\n",
        b"doc\titem\ttoken\tgold\tann\tbob\nd\t1\tAnn\tB-X\tB-X\tO\nd\t1\tsang\tO\tO\t?\n",
        b"# id = 1\nAnn\tB-X\nsang\tO\n",
        b"item,label\n1,x\n2,y\n",
    ],
    ids=["single", "attempts", "tagged", "gold of tokens", "gold of labels"],
)
def test_the_frame_of_a_crowd_is_read_back(data):
    crowd = goldspan.read_crowd(data)
    frame = crowd.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert goldspan.read_crowd(frame) == crowd
    assert goldspan.read_crowd(crowd.to_arrow()) == crowd


def test_the_table_of_agreement_is_that_of_the_workers(example):
    found = goldspan.agreement(example.crowd)
    frame = found.to_pandas()
    assert frame["worker"].tolist() == example.crowd.worker_ids.to_pylist()
    assert list(frame.columns) == found.workers.column_names


def test_the_table_of_a_score_has_the_types_micro_and_macro(example):
    found = goldspan.score(example.crowd, example)
    frame = found.to_pandas().set_index("type")
    assert frame.index.tolist() == [*found.types, "micro", "macro"]
    assert frame.loc["micro", "f1"] == found.f1
    assert frame.loc["macro", "f1"] == found.macro[2]
    assert pd.isna(frame.loc["macro", "n_true"])
    assert str(frame["n_true"].dtype) == "Int64"


def test_without_pandas_the_line_that_installs_it_is_told(monkeypatch, example):
    monkeypatch.setitem(sys.modules, "pandas", None)
    results = (example, example.crowd, goldspan.agreement(example.crowd))
    for each in (*results, goldspan.score(example, example)):
        with pytest.raises(MissingExtraError, match=r"to_pandas\(\) needs pandas.*pip install pa"):
            each.to_pandas()
        assert hasattr(each, "to_pandas")
        assert "<table" in each._repr_html_()


def test_a_notebook_shows_the_first_items_with_their_spans(example):
    found = read(example)
    assert found.tags.count("tr") == MOST_ITEMS + 1
    assert f"… and {example.crowd.n_items - MOST_ITEMS} more items" in found.text
    first = set(example.crowd.item_ids.to_pylist()[:MOST_ITEMS])
    spans = [row for row in example.spans.to_pylist() if row["item"] in first]
    assert len(found.marks) == len(spans)
    frame = example.to_pandas()
    for mark, row in zip(found.marks, frame.itertuples(), strict=False):
        assert mark == f"{row.text}{row.type} {row.confidence:.2f}"


def test_single_labels_are_a_table():
    data = b"task,worker,label,gold\n1,a,x,x\n1,b,x,x\n1,c,y,x\n2,a,?,?\n"
    found = read(goldspan.aggregate(data, "mv-token"))
    assert found.text.endswith("itemlabelconfidence1x0.6672–0.000")
    assert read(goldspan.read_crowd(data)).text.endswith("itemanswersgold1x ×2, y ×1x2–")


def test_items_in_parts_are_shown_whole():
    rows = b"item,worker,label\n1,a,x|y\n1,b,x\n2,a,y|x\n2,b,y|x\n3,a,z\n3,b,z\n"
    crowd = goldspan.read_crowd(rows, several="labels", gold={"1": ["x"], "3": ["z", "y"]})
    assert read(crowd).text.endswith("itemanswersgold1x ×2, y ×1x2x ×2, y ×2–3z ×2y, z")
    found = read(goldspan.aggregate(crowd, "mv-token")).text
    assert found.endswith("itemlabelsconfidence1x0.5002x, y1.0003z1.000")
    spans = [[0, 6, "ORG"], [5, 6, "LOC"]]
    row = {
        "item": "s",
        "text": "U of N",
        "gold": spans,
        "answers": [{"worker": "a", "spans": spans}],
    }
    crowd = goldspan.read_crowd(json.dumps(row).encode(), format="spans")
    for one, sure in ((crowd, ""), (goldspan.aggregate(crowd, "mv-seg"), " 1.00")):
        assert read(one).tags.count("tr") == 2
        assert read(one).marks == [f"U of NORG{sure}", f"NLOC{sure}"]


def test_agreement_and_score_are_tables(example):
    assert "Krippendorff's alpha 0.313" in read(goldspan.agreement(example.crowd)).text
    found = goldspan.score(example.crowd, example, bootstrap=100)
    assert f"F1 {found.f1:.3f}" in read(found).text
    assert "95 % interval" in read(found).text


def test_a_score_of_many_types_shows_the_most_frequent():
    tags = [f"B-T{n:02}" for n in range(30)]
    found = read(goldspan.score([tags, [tags[29]]], [tags, [tags[29]]]))
    assert "the 20 most frequent of 30 types" in found.text
    assert "T29" in found.text
    assert "T25" not in found.text
    assert "micro" in found.text


def test_nothing_of_the_data_becomes_html():
    crowd = crowd_of_texts(
        f"{EVIL} lives in <b>Rome</b>", "x & y", labels=(EVIL.replace(" ", ""), "LOC"), gold=True
    )
    result = goldspan.aggregate(crowd, "mv-token")
    for each in (crowd, result, goldspan.agreement(crowd), goldspan.score(crowd, result)):
        found = read(each)
        assert "script" not in found.tags
        assert "b" not in found.tags[found.tags.index("table") :]
        assert "&amp;amp;" not in found.text
        assert EVIL in found.text
    single = [{"task": EVIL, "worker": EVIL, "label": EVIL, "gold": EVIL}]
    for each in (goldspan.read_crowd(single), goldspan.aggregate(single, "mv-token")):
        assert "script" not in read(each).tags
        assert read(each).text.count(EVIL) >= 2


def test_the_original_text_is_shown_with_its_spaces_and_lines():
    text = "Ann  said:\n\tgo to Rome"
    html = goldspan.aggregate(crowd_of_texts(text), "mv-token")._repr_html_()
    assert "white-space: pre-wrap" in html
    assert "  said:\n\tgo to " in html
    assert "dir='auto'" in html


def test_a_long_text_ends_and_says_how_much_is_left():
    text = "word " * 1000
    found = _Read(marked(text, [MarkedSpan(0, 4, "A", 0), MarkedSpan(4990, 4994, "B", 0)]))
    assert found.marks == ["wordA"]
    assert f"… and {len(text) - MOST_CHARACTERS:,} more characters" in found.text
    late = _Read(marked(text, [MarkedSpan(0, 3000, "A", 0, 0.5)]))
    assert late.marks == [f"{text[:3000]}A 0.50"]


def test_the_repr_of_a_result_is_short(example):
    assert repr(example).startswith("Consensus(mv-token, 150 items, ")
    assert "690 answers of 7 workers, mean confidence 0." in repr(example)
    one = goldspan.aggregate(b"task,worker,label\n1,a,x\n", "mv-token")
    assert repr(one) == ("Consensus(mv-token, 1 item, 1 answer of 1 worker, mean confidence 1.00)")
    stopped = goldspan.aggregate(example.crowd, "bsc-acc", max_iter=1)
    assert repr(stopped).endswith(", not converged)")
    assert len(repr(stopped)) < 150
