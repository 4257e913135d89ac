"""Tables whose columns are recognised by their names and by what is in them."""

from __future__ import annotations

import csv
import io
import random
import shlex

import pytest

from goldspan.crowd import read_crowd
from goldspan.crowd.detection import guess_format, recognise
from goldspan.crowd.guessing import guesses, peek
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError

TEXTS = [
    f"{what} {place} was {how} indeed"
    for what in ("The soup", "A bread", "My tea")
    for place in ("of Oslo", "in Rome", "today")
    for how in ("good", "cold")
]
LABELS = ("pos", "neg", "neu")


def table(header, rows, mark=","):
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n")
    out.writerows([header, *rows] if header else rows)
    return buffer.getvalue().encode()


def answers(n=8, each=3, seed=0):
    rng = random.Random(seed)
    return [
        (item, f"p{who}", rng.choice(LABELS))
        for item in range(n)
        for who in rng.sample(range(5), each)
    ]


@pytest.mark.parametrize(
    "header",
    [
        ("tweet_id", "rater", "stance"),
        ("review_id", "annotator", "sentiment"),
        ("qid", "coder", "code"),
        ("Question", "Worker ID", "Answer"),
        ("unit", "contributor_id", "choice"),
        ("url", "user", "category"),
        ("sent_id", "labeler", "toxic"),
        ("pair", "judge_id", "relevance"),
        ("image", "annotator_name", "class"),
        ("HIT", "turker", "is_spam"),
        ("sample", "AnnotatorID", "Label"),
    ],
)
@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_row_per_answer_is_read_whatever_its_columns_are_called(header, mark):
    rows = answers()
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        data = table([header[n] for n in order], [[row[n] for n in order] for row in rows], mark)
        crowd = read_crowd(data)
        read = {
            (item, worker): label
            for item in crowd.item_ids.to_pylist()
            for worker, [label] in crowd.answers_of(item).items()
        }
        assert read == {(str(item), worker): label for item, worker, label in rows}


@pytest.mark.parametrize(
    ("header", "workers"),
    [
        (("id", "ann", "ben", "cid"), ("ann", "ben", "cid")),
        (("id", "text", "label_1", "label_2", "label_3"), ("label_1", "label_2", "label_3")),
        (("text", "Rater A", "Rater B"), ("Rater A", "Rater B")),
        (("sentence", "coder1", "coder2", "gold"), ("coder1", "coder2")),
        (("item", "label_ann", "label_bob"), ("label_ann", "label_bob")),
        (("text", "ann1", "ann2", "majority_label"), ("ann1", "ann2")),
        (("tweet", "annotator_1_label", "annotator_2_label"), None),
        (("id", "text", "Mara", "Ben", "truth"), ("Mara", "Ben")),
    ],
)
def test_a_column_per_annotator_is_read_with_gold_and_texts(header, workers):
    rng = random.Random(4)
    rows = []
    for n in range(10):
        cells = {"id": n, "item": n, "text": TEXTS[n], "sentence": TEXTS[n], "tweet": TEXTS[n]}
        rows.append([cells.get(name, rng.choice(LABELS)) for name in header])
    crowd = read_crowd(table(header, rows))
    workers = workers or header[1:]
    assert crowd.worker_ids.to_pylist() == list(workers)
    assert crowd.n_items == 10
    assert len(crowd.answers) == 10 * len(workers)
    for n, name in enumerate(crowd.item_ids.to_pylist()):
        given = dict(zip(header, rows[n], strict=True))
        assert crowd.answers_of(name) == {who: [given[who]] for who in workers}
    assert (crowd.gold is not None) == bool({"gold", "truth"} & {*header})


def test_a_table_without_a_header_is_read_by_the_numbers_of_its_columns():
    rows = [(f"worker{w}", f"http://{t}.example", label) for t, w, label in (
        ("a", 1, "spam"), ("b", 1, "ham"), ("a", 2, "spam"), ("b", 2, "spam"))]  # fmt: skip
    data = table(None, rows, "\t")
    crowd = read_crowd(data)
    assert crowd.answers_of("http://b.example") == {"worker1": ["ham"], "worker2": ["spam"]}
    assert crowd.import_report.n_labels == 4
    named = {"item": "2", "worker": "1", "label": "3"}
    again = read_crowd(data, format="long", columns=named)
    assert again.answers_of("http://b.example") == crowd.answers_of("http://b.example")
    with_header = table(("who", "what", "which"), rows, "\t")
    assert read_crowd(with_header, format="long", columns=named).import_report.n_labels == 4


def test_a_frame_is_read_in_the_same_way():
    pandas = pytest.importorskip("pandas")
    rows = answers()
    frame = pandas.DataFrame(rows, columns=["tweet_id", "rater", "stance"])
    crowd = read_crowd(frame)
    assert crowd.import_report.n_labels == len(rows)
    assert crowd.n_workers == 5
    wide = pandas.DataFrame({"id": ["a", "b"], "label_1": ["x", "y"], "label_2": ["y", "y"]})
    assert read_crowd(wide).answers_of("b") == {"label_1": ["y"], "label_2": ["y"]}


def test_an_item_that_nobody_labelled_stays_one():
    crowd = read_crowd(b"id,label_1,label_2\na,x,y\nb,,\nc,y,x\n")
    assert crowd.item_ids.to_pylist() == ["a", "b", "c"]
    assert crowd.answers_of("b") == {}
    assert len(crowd.answers) == 4


FACTS = {
    "number": lambda n, _: n,
    "text": lambda n, _: TEXTS[n],
    "two": lambda _, rng: rng.choice("xy"),
    "binary": lambda _, rng: rng.choice("01"),
    "many": lambda _, rng: rng.randint(0, 99),
    "who": lambda n, _: f"u{n % 7}",
    "four": lambda n, _: n % 4,
    "day": lambda n, _: f"2020-01-{n + 1:02}",
}


@pytest.mark.parametrize(
    "columns",
    [
        "id:number text:text author:who category:two",
        "text:text user:who likes:many",
        "product:four reviewer:who rating:two text:text",
        "id:number text:text toxic:binary obscene:binary threat:binary",
        "id:number text:text lang:two source:who split:two",
        "respondent:number age:many q1:two q2:two",
        "date:day open:many high:many",
    ],
)
def test_a_table_of_other_facts_is_no_table_of_answers(columns):
    rng = random.Random(5)
    header, kinds = zip(*(one.split(":") for one in columns.split()), strict=True)
    data = table(header, [[FACTS[kind](n, rng) for kind in kinds] for n in range(len(TEXTS))])
    assert guesses(peek(open_source(data))) == []


@pytest.mark.parametrize("head", [",rating,coder,tweet", '"rating","coder","tweet"'])
def test_a_first_column_of_row_numbers_without_a_name_is_not_read(head):
    rows = "1,3,ann,q1\n2,4,bob,q1\n3,3,ann,q2\n4,3,bob,q2\n"
    crowd = read_crowd(f"{head}\n{rows}".encode())
    assert crowd.item_ids.to_pylist() == ["q1", "q2"]
    assert crowd.worker_ids.to_pylist() == ["ann", "bob"]
    assert crowd.tagset.tags == ("3", "4")


@pytest.mark.parametrize("head", ["wort", ",wort"])
def test_words_under_any_name_may_be_items_of_a_column_per_annotator(head):
    lines = ["Haus,pos,neg,pos", "Krieg,neg,neg,neg", "Baum,neu,pos,neu"]
    rows = "\n".join(f"{n},{line}" if "," in head else line for n, line in enumerate(lines))
    with pytest.raises(FormatError, match="--columns item=wort --workers anna,ben,cid"):
        read_crowd(f"{head},anna,ben,cid\n{rows}\n".encode())


def test_how_sure_annotators_were_is_no_label_of_theirs():
    rows = "s1,It works,pos,5,pos,3,pos\ns2,It broke,neg,4,pos,2,neg\n"
    head = "sid,sentence,ann1_label,ann1_conf,ann2_label,ann2_conf,final\n"
    crowd = read_crowd((head + rows).encode())
    assert crowd.worker_ids.to_pylist() == ["ann1_label", "ann2_label"]
    assert crowd.gold.tolist() == [1, 0]


def test_texts_with_a_column_of_labels_name_the_option_that_reads_it():
    data = b"id,text,is_toxic\n1,you fool,yes\n2,nice day,no\n3,hello you,no\n"
    with pytest.raises(FormatError, match="--columns label=is_toxic"):
        read_crowd(data)
    gold = read_crowd(data, columns={"label": "is_toxic"})
    assert (gold.n_items, gold.n_workers) == (3, 0)
    assert gold.gold.tolist() == [1, 0, 0]
    name, _, notes = recognise(open_source(data), ReadOptions(), texts=True)
    assert name == "texts"
    assert "--format long --columns label=is_toxic" in notes[0]


def test_xml_and_outputs_of_models_are_refused_with_a_way_out():
    xml = b"<?xml version='1.0'?><GateDocument><TextWithNodes>Mara</TextWithNodes></GateDocument>"
    batch = b'{"custom_id": "q1", "response": {"body": {"choices": []}}}\n'
    for data in (xml, batch):
        with pytest.raises(FormatError, match="write a table with a row per span"):
            read_crowd(data)


def test_what_is_not_sure_is_refused_with_commands_that_work():
    rng = random.Random(6)
    rows = [(n, f"w{w}", rng.choice("ab"), rng.choice("cd")) for n in range(9) for w in range(3)]
    data = table(("id", "annotator", "topic", "stance"), rows)
    with pytest.raises(FormatError, match="say how it is read") as error:
        read_crowd(data)
    commands = str(error.value).split("`")[1::2]
    assert len(commands) == 2
    for command, labels in zip(commands, ("ab", "cd"), strict=True):
        words = shlex.split(command)
        assert words[:4] == ["goldspan", "aggregate", "<bytes>", "--format"]
        columns = dict(word.split("=") for word in words[6::2])
        crowd = read_crowd(data, format=words[4], columns=columns)
        assert {*crowd.tagset.tags} == {*labels}


def test_a_column_that_is_named_settles_it():
    rng = random.Random(7)
    rows = [(n, f"w{w}", rng.choice("ab"), rng.choice("cd")) for n in range(9) for w in range(3)]
    data = table(("id", "annotator", "topic", "stance"), rows)
    crowd = read_crowd(data, columns={"label": "stance"})
    assert {*crowd.tagset.tags} == {"c", "d"}
    assert any("label=stance" in note for note in crowd.import_report.notes)


@pytest.mark.parametrize(
    "data",
    [
        b"<?xml version='1.0'?>\n<doc><a id='1'/></doc>\n",
        b"name: x\nlabels: 3\n",
        b"one\ttwo\n1\t2\n",
        b"a b\nc d\n",
    ],
)
def test_what_has_no_sign_of_tags_is_not_taken_for_them(data):
    with pytest.raises(FormatError, match=r"not recognised|do not say what they are"):
        guess_format(open_source(data))


@pytest.mark.parametrize(
    "data",
    [
        b"Mara B-PER\nsang O\n",
        b"-DOCSTART- -X-\n\nMara NNP\n",
        b"# id = 1\nMara NNP\n",
        b"token tag\nMara NNP\n",
    ],
)
def test_what_has_one_is(data):
    assert guess_format(open_source(data)) == "conll"


def test_written_lists_in_cells_are_refused_with_a_way_out():
    with pytest.raises(FormatError, match="as Parquet or as JSON lines"):
        read_crowd(b'id,text,entities\n1,Mara flew,"[(0, 4, \'PER\')]"\n2,Oslo rose,"[]"\n')


def test_a_table_of_r_with_blanks_between_cells_is_no_plain_text(tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text('"item" "worker" "label"\n"1" "q1" "ann" "yes"\n"2" "q1" "bob" "no"\n')
    with pytest.raises(FormatError, match="--delimiter ' '"):
        recognise(open_source(path), ReadOptions(), texts=True)
    crowd = read_crowd(path, format="long", delimiter=" ")
    assert (crowd.n_items, crowd.n_workers, len(crowd.answers)) == (1, 2, 2)


def test_a_form_with_a_row_per_respondent_is_refused_with_a_way_that_works():
    rows = [
        ["Time", "Name", "Good?", "Warm?"],
        ["1", "Mara", "yes", "no"],
        ["2", "Ben", "no", "no"],
    ]
    with pytest.raises(FormatError, match=r"--format wide --columns item=….*must be transposed"):
        read_crowd(table(rows[0], rows[1:]))
    turned = [*zip(*(row[1:] for row in rows), strict=True)]
    crowd = read_crowd(table(turned[0], turned[1:]), format="wide", columns={"item": "Name"})
    assert crowd.answers_of("Good?") == {"Mara": ["yes"], "Ben": ["no"]}


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        (b"id,a,b", {"item": "zz"}, "there is no column 'zz'"),
        (b"id,a,b", {"item": "id", "gold": "9"}, "there is no column '9'"),
        (b"id,text,gold", {"item": "id"}, "no column of an annotator is left"),
    ],
)
def test_columns_of_a_wide_table_that_are_not_there_are_refused(header, columns, message):
    with pytest.raises(FormatError, match=message):
        read_crowd(header + b"\n1,x,y\n2,y,y\n", format="wide", columns=columns)
