"""`goldspan train`, `goldspan tag`, `goldspan tagger inspect`: results, exit codes, endless
input."""

from __future__ import annotations

import gzip
import io
import json
import resource
from contextlib import nullcontext
from pathlib import Path

import pytest

from cli.test_cli import done, goldspan_run, refused
from goldspan.cli.output import Steps
from goldspan.crowd import read_crowd
from goldspan.spans import tokenize
from goldspan.tagger import CRF, load_tagger
from goldspan.tagger.streams import blocks, label, read_items

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"


def spans_of(line):
    return [(span["type"], span["start"], span["end"]) for span in json.loads(line)["gold"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "ner.goldspan"
    done("train", EXAMPLE, "-o", path, "--max-iter", 60)
    return path


def test_train_says_what_it_did_and_writes_a_tagger(tmp_path):
    path = tmp_path / "ner.goldspan"
    text = done("train", EXAMPLE, "-o", path, "--max-iter", 20, "--threads", 1)
    for part in ("model: crf", "items: 150", "tokens: 2599", "steps: 20", "stopped by: max_iter"):
        assert part in text
    crowd = read_crowd(EXAMPLE)
    loaded = load_tagger(path)
    assert loaded.documents_
    assert loaded.score(crowd.tokens_list, crowd.tagset.decode(crowd.gold_tagged)) > 0.9
    assert [p.name for p in tmp_path.iterdir()] == ["ner.goldspan"]


def test_train_options_reach_the_tagger(tmp_path, model):
    path = tmp_path / "m.goldspan"
    templates = tmp_path / "t.toml"
    templates.write_text('templates = ["word"]')
    facts = json.loads(
        done(
            "train", EXAMPLE, "-o", path, "--templates", templates, "--c2", "0.25", "--soft",
            "--min-count", 2, "--validation", EXAMPLE, "--start", model, "--json",
        )
    )  # fmt: skip
    assert facts["validation_f1"] > 30
    found = load_tagger(path)
    assert (found.c2, found.hard, found.min_count) == (0.25, False, 2)
    assert found.templates == ["word"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--templates", "typo"], "unknown feature set 'typo'"),
        (["--start", "none.goldspan"], "no such file"),
    ],
)
def test_train_refuses_what_it_cannot_do(tmp_path, words, message):
    assert message in refused("train", EXAMPLE, "-o", tmp_path / "m.goldspan", *words)
    assert not list(tmp_path.iterdir())


def test_names_of_items_are_no_texts_to_learn_from(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,worker,label,gold\n1,a,x,x\n2,a,y,y\n")
    message = refused("train", path, "-o", tmp_path / "m.goldspan")
    assert "labels.csv: a tagger learns from texts, and these items have only names" in message


@pytest.fixture
def partly(tmp_path):
    """The example with a tag missing in its first item and all tags in its second."""
    lines = [line.split("\t") for line in EXAMPLE.read_text().splitlines()]
    items = list(dict.fromkeys(tuple(row[:2]) for row in lines[1:] if len(row) > 3))
    lines[1][3] = "?"
    for row in lines[1:]:
        if tuple(row[:2]) == items[1]:
            row[3] = "?"
    path = tmp_path / "part.tsv"
    path.write_text("\n".join("\t".join(row) for row in lines) + "\n")
    return path


@pytest.mark.parametrize("model", ["crf", "hmm"])
def test_items_tagged_in_part_count_and_those_without_tags_are_left_out(tmp_path, partly, model):
    words = ["train", model, partly, "-o", tmp_path / "m.goldspan", "--max-iter", 2]
    run = goldspan_run(*words, "--validation", partly)
    assert run.returncode == 0
    assert "1 items without any tag were left out" in run.stderr
    assert "1 items are tagged in part" in run.stderr
    for part in ("items: 149", "steps: 2", "stopped by:", "validation f1"):
        assert part in run.stdout


def test_the_counts_of_training_are_in_the_json_too(tmp_path, partly):
    words = ["train", partly, "-o", tmp_path / "m.goldspan", "--max-iter", 2, "--json"]
    facts = json.loads(goldspan_run(*words).stdout)
    assert (facts["items_left_out"], facts["items_in_part"]) == (1, 1)
    assert facts["tags_made_well_formed"] == 0
    assert facts["items"] == 149


@pytest.mark.parametrize("model", ["crf", "hmm"])
def test_tags_known_in_part_that_cannot_be_are_refused_by_id(tmp_path, model):
    text = "item\ttoken\tgold\nq1\tA\t?\n\nq2\tB\tB-PER\n\nq3\tC\tO\nq3\tD\tI-PER\nq3\tE\t?\n"
    (tmp_path / "t.tsv").write_text(text)
    words = [model, tmp_path / "t.tsv", "-o", tmp_path / "m.goldspan", "-e", "BIO"]
    message = refused("train", *words)
    assert message.startswith("goldspan: item q3: no well-formed sequence")
    assert "--soft" in message
    assert goldspan_run("train", *words, "--soft").returncode == 0


def test_options_may_come_before_the_file(tmp_path):
    done("train", "--max-iter", 2, EXAMPLE, "-o", tmp_path / "m.goldspan")
    assert load_tagger(tmp_path / "m.goldspan").max_iter == 2


def test_a_tagger_is_not_written_to_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = goldspan_run("train", EXAMPLE, "-o", "-")
    assert run.returncode == 2
    assert "--output cannot be standard output" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wide.tsv", "doc\tsent\ttoken\tgold\tann\nN01\t1\tAnn\tB-PER\tO\n"),
        ("wide.txt", "\n# made by me\ndoc\ttoken\tann\nN01\tAnn\tO\n"),
        ("long.csv", "item,worker,label\nq1,ann,yes\n"),
        ("long.tsv", "item\tworker\ttoken\tlabel\nq1\tann\tAnn\tB-PER\n"),
        ("-", "doc\ttoken\tann\nN01\tAnn\tO\n"),
    ],
)
def test_a_table_of_answers_is_no_text(model, tmp_path, name, content):
    path = name if name == "-" else tmp_path / name
    if name != "-":
        path.write_text(content)
    message = refused("tag", model, path, stdin=content.encode())
    assert "this is the header of a table of answers" in message
    assert "goldspan convert" in message


def test_words_in_the_first_column_and_plain_text_are_no_table(model, tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("token\tgold\tann\nCouncillors\tO\tO\nspoke\tO\tO\n")
    assert done("tag", model, path).count("\n") == 3
    path.write_text("item\tworker\tlabel\n")
    assert "worker\t" in done("tag", model, path, "-f", "text")
    (tmp_path / "prose.txt").write_text("Item, label: nothing else.\n")
    assert "label\t" in done("tag", model, tmp_path / "prose.txt")


def test_an_output_whose_ending_says_nothing_is_refused(model, tmp_path):
    out = tmp_path / "x.csv"
    assert "the name must end in .jsonl, .conll" in refused("tag", model, EXAMPLE, "-o", out)
    assert not list(tmp_path.iterdir())
    (tmp_path / "t.txt").write_text("Mayor spoke\n")
    assert "written" in done("tag", model, tmp_path / "t.txt", "-o", out, "--to-format", "conll")


def test_numbers_that_json_lacks_become_null(model):
    line = b'{"text": "Ann spoke", "score": NaN, "more": [1e999, -Infinity, 1.5, 2]}\n'
    text = done("tag", model, "-", "-f", "jsonl", stdin=line)

    def stray(name):
        raise AssertionError(name)

    found = json.loads(text, parse_constant=stray)
    assert found["score"] is None
    assert found["more"] == [None, None, 1.5, 2]


def test_plain_text_is_tokenised_and_tagged_line_by_line(model, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\ufeffCouncillors in Kestrel Bay voted.\n\n  \nMayor spoke\n", "utf-8")
    items = done("tag", model, path).split("\n\n")
    assert items[0].startswith("# id = 1\nCouncillors\tO\t")
    rows = [line.split("\t") for line in items[0].splitlines()[1:]]
    assert [row[0] for row in rows] == ["Councillors", "in", "Kestrel", "Bay", "voted", "."]
    assert [row[1] for row in rows][2:4] == ["B-LOC", "I-LOC"]
    assert all(0 < float(row[2]) <= 1 for row in rows)
    assert items[1].startswith("# id = 4\nMayor")


def test_conll_and_json_lines_give_the_same_tags(model, tmp_path):
    crowd = read_crowd(EXAMPLE)
    ids, words = crowd.item_ids.to_pylist()[:20], crowd.tokens_list[:20]
    conll, jsonl = tmp_path / "in.conll", tmp_path / "in.jsonl.gz"
    conll.write_text(
        "".join(
            f"# id = {name}\n" + "".join(f"{w}\tNN\n" for w in own) + "\n"
            for name, own in zip(ids, words, strict=True)
        )
    )
    with gzip.open(jsonl, "wt", encoding="utf-8") as file:
        for name, own in zip(ids, words, strict=True):
            file.write(json.dumps({"item": name, "tokens": own, "who": "me"}) + "\n")
    one = done("tag", model, conll, "--to-format", "jsonl").splitlines()
    other = done("tag", model, jsonl).splitlines()
    assert [json.loads(line)["item"] for line in one] == ids
    assert [spans_of(line) for line in one] == [spans_of(line) for line in other]
    assert sum(map(len, map(spans_of, one))) > 5
    assert json.loads(other[0])["who"] == "me"
    # a document is the item here: what the library says of items on their own
    tags = load_tagger(model).predict(words)
    assert [json.loads(line)["token_tags"] for line in one] == tags


def test_json_lines_with_text_have_character_offsets(model):
    text = "Councillors in Kestrel Bay, voted."
    line = json.dumps({"id": 7, "text": text}).encode()
    found = json.loads(done("tag", model, "-", "-f", "jsonl", stdin=line))
    assert found["item"] == "7"
    assert found["text"] == text
    (span,) = [span for span in found["gold"] if span["type"] == "LOC"]
    assert text[span["start"] : span["end"]] == span["text"] == "Kestrel Bay"
    assert 0 < span["confidence"] <= 1
    assert found["tokens"] == [text[a:b] for a, b in tokenize(text)]


def test_what_is_written_can_be_read_and_scored(model, tmp_path):
    crowd = read_crowd(EXAMPLE)
    text = tmp_path / "in.conll"
    text.write_text("\n\n".join("\n".join(words) for words in crowd.tokens_list))
    for name in ("out.conll", "out.jsonl", "out.conll.gz"):
        assert "150 items, 2,599 tokens" in done("tag", model, text, "-o", tmp_path / name)
    found = read_crowd(tmp_path / "out.conll")
    assert found.tokens_list == crowd.tokens_list
    again = read_crowd(tmp_path / "out.jsonl")
    assert again.tagset.decode(again.gold_tagged) == found.tagset.decode(found.gold_tagged)
    packed = gzip.decompress((tmp_path / "out.conll.gz").read_bytes()).decode()
    assert packed == (tmp_path / "out.conll").read_text()


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"caf\xe9 ol\xe9\n", "t.txt", "is not UTF-8"),
        (b"{oops\n", "t.jsonl", "line 1: this is not JSON"),
        (b'{"tokens": ["a"]}\n[1]\n', "t.jsonl", "line 2: a line must hold an object"),
        (b'{"tokens": ["a", 1]}\n', "t.jsonl", "line 1: it needs `tokens`"),
        (b"a\tO\n\tO\n", "t.conll", "line 2: the first column is empty"),
        (b"x" * (1 << 21), "t.conll", "line 1: the line has more than"),
        (b"no gzip", "t.txt.gz", "cannot read"),
        (gzip.compress(b"one two\n" * 9999)[:-9], "t.txt.gz", "is damaged"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_left_behind(model, tmp_path, content, name, message):
    (tmp_path / name).write_bytes(content)
    assert message in refused("tag", model, tmp_path / name, "-o", tmp_path / "out.conll")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_that_are_not_there_or_no_tagger(model, tmp_path):
    assert "cannot read" in refused("tag", model, tmp_path / "none.txt")
    assert "is not a tagger of goldspan" in refused("tag", EXAMPLE, EXAMPLE)
    assert "no such file" in refused("tagger", "inspect", tmp_path / "none.goldspan")
    for words in (["-f", "xml"], ["--to-format", "xml"]):
        assert "choose from" in refused("tag", model, EXAMPLE, *words)


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_the_bar_shows_how_much_of_the_file_was_read(model, tmp_path, monkeypatch, name):
    text = b"Ann saw Rome\n" * 30_000
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    size, shown = (tmp_path / name).stat().st_size, []

    class Bar(Steps):
        def part(self, done, total):
            shown.append((done, total))

    monkeypatch.setattr("goldspan.cli.models.steps", lambda *_, **__: nullcontext(Bar()))
    done("tag", model, tmp_path / name, "-o", tmp_path / "out.conll")
    reads = [read for read, _ in shown]
    assert {total for _, total in shown} == {size}
    assert reads == sorted(reads)
    assert 0 < reads[0] <= reads[-1] == size
    shown.clear()
    done("tag", model, "-", stdin=b"Ann saw Rome\n")
    assert shown == [(0, 0)]  # nobody knows where standard input ends


def test_nothing_in_gives_nothing_out(model):
    for name in ("text", "conll", "jsonl"):
        assert done("tag", model, "-", "-f", name) == ""


def test_inspect_shows_the_largest_weights_of_every_tag(model):
    text = done("tagger", "inspect", model, "--top", 3)
    for part in ("model: crf", "tags: O, B-LOC", "\nB-PER\n", "steps from (row) to (column)"):
        assert part in text
    facts = json.loads(done("tagger", "inspect", model, "--label", "B-LOC", "--json"))
    loaded = load_tagger(model)
    ((name, weight),) = facts["weights"]["B-LOC"][:1]
    own = loaded.weights_.state[:, loaded.codec_.index["B-LOC"]]
    assert weight == own.max()
    assert name == loaded.features_.name(int(own.argmax()))
    assert facts["steps"]["O"]["I-LOC"] is None
    assert facts["steps"]["B-LOC"]["I-LOC"] > facts["steps"]["B-LOC"]["B-LOC"]
    assert "unknown tag 'B-XYZ'" in refused("tagger", "inspect", model, "--label", "B-XYZ")


def test_blocks_hold_all_items_in_order_and_keep_documents_together():
    lines = io.StringIO("".join(f"{'w ' * (n % 7 + 1)}\n" + "\n" * (n % 5 == 0) for n in range(99)))
    items = list(read_items(lines, "text", "t"))
    for whole in (True, False):
        cut = list(blocks(items, whole=whole, size=10))
        assert [item for block in cut for item in block] == items
        assert len(cut) > 3
    last = [block[-1].document for block in blocks(items, whole=True, size=10)]
    assert len(set(last)) == len(last)
    huge = list(blocks(items, whole=True, size=1))
    assert max(sum(len(item.words) for item in block) for block in huge) < 20


def test_a_line_that_never_ends_is_cut_at_white_space(monkeypatch):
    monkeypatch.setattr("goldspan.tagger.streams.MAX_LINE", 20)
    text = "alpha beta gamma delta epsilon zeta\nlast one\n" + "x" * 45
    items = list(read_items(io.StringIO(text), "text", "t"))
    words = [word for item in items for word in item.words]
    assert words[:8] == text.split()[:8]
    assert "".join(words[8:]) == "x" * 45
    assert [item.name for item in items][:3] == ["1", "1", "2"]


def test_conll_documents_begin_at_docstart():
    text = "token\ttag\n-DOCSTART-\tO\n\na\tO\n\nb\tO\n\n-DOCSTART-\tO\n\nc\tO\n"
    items = list(read_items(io.StringIO(text), "conll", "t"))
    assert [(item.words, item.document) for item in items] == [(["a"], 1), (["b"], 1), (["c"], 2)]


def test_tagging_a_stream_takes_the_memory_of_a_block():
    crf = CRF(templates=["word"], max_iter=2).fit([["a", "b"]], [["B-X", "O"]])

    class Endless:
        left = 8_000

        def readline(self, most):
            self.left -= 1
            assert most > 200
            return "a b " * 25 + "\n" if self.left > 0 else ""

    n_tokens, before = 0, 0
    for n, one in enumerate(label(crf, read_items(Endless(), "text", "t"))):
        n_tokens += len(one.tags)
        if n == 1_000:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert n_tokens == 7_999 * 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


def test_texts_are_cut_as_the_training_texts_were_or_as_one_says(model):
    assert load_tagger(model).tokens_ == "words"
    text = b"Toyota's plug-in\n"
    words = {
        rule: [line.split("\t")[0] for line in run.splitlines() if "\t" in line]
        for rule, run in (
            ("", done("tag", model, "-", stdin=text)),
            ("fine", done("tag", model, "-", "--tokens", "fine", stdin=text)),
        )
    }
    assert words == {"": ["Toyota's", "plug-in"], "fine": ["Toyota", "'", "s", "plug", "-", "in"]}
    assert "rule for tokens" in refused("tag", model, "-", "--tokens", "coarse", stdin=text)


def test_the_texts_of_a_table_are_tagged_and_its_header_is_no_text(model, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text('id,text,page\na,"Ann saw Rome, and left",3\n')
    (line,) = done("tag", model, path, "--to-format", "jsonl").splitlines()
    found = json.loads(line)
    assert (found["item"], found["text"], found["page"]) == ("a", "Ann saw Rome, and left", "3")
    excel = tmp_path / "texts.xls"
    excel.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....")
    assert "open it and save it as CSV" in refused("tag", model, excel)


@pytest.mark.parametrize("name", ["tagged", "tagged.parquet"])
def test_a_dataset_holds_the_tags_the_fields_and_the_confidences(tmp_path, model, name):
    import pyarrow.parquet as pq

    lines = [{"item": "a", "text": "Ann Lee sang in Rome.", "doc": 7, "source": "web", "x": [1]},
             {"item": "b", "tokens": ["in", "Rome"]}]  # fmt: skip
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    done("tag", model, tmp_path / "t.jsonl", "-o", tmp_path / name, "--to-format", "datasets")
    done("tag", model, tmp_path / "t.jsonl", "-o", tmp_path / "t2.jsonl")
    found = read_crowd(tmp_path / name)
    wanted = [json.loads(line) for line in (tmp_path / "t2.jsonl").read_text().splitlines()]
    tags = found.tagset.decode(found.gold_tagged)
    assert tags == [row["token_tags"] for row in wanted]
    assert any(tag != "O" for row in tags for tag in row)
    assert found.groups.to_pylist() == ["7", None]
    assert found.attributes["source"].to_pylist() == ["web", None]
    if name.endswith(".parquet"):
        spans = pq.read_table(tmp_path / name)["spans"].to_pylist()
        sure = [[round(one["confidence"], 4) for one in row["gold"]] for row in wanted]
        assert [[round(one["confidence"], 4) for one in row] for row in spans] == sure


@pytest.mark.parametrize("name", ["datasets", "docbin"])
def test_formats_that_are_no_lines_need_a_name(model, name):
    run = goldspan_run("tag", model, EXAMPLE, "--to-format", name)
    assert run.returncode == 2
    assert f"{name} needs the name of a file" in " ".join(run.stderr.replace("│", "").split())
