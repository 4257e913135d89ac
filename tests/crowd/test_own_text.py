"""People's own text: it comes back from every format, and so does every span that was selected.

Every file is read twice: by goldspan, and by a few lines written from the definition of its format.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import goldspan
from crowd_strategies import alike
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions, read_crowd, write_crowd
from goldspan.crowd.formats.span_exports import answer_rows, chars_of, gold_rows
from goldspan.crowd.model import item_texts
from goldspan.errors import FormatError, InputError
from goldspan.spans import Span, tokenize, write
from own_text import own_texts

TYPES = ("PERSON", "PRODUCT")
WORKERS = ("ann", "bob", "cem")
Selected = dict[tuple[str, str], list[tuple[str, int, int]]]
"""Item and worker: type, first character and one past the last of every span."""


def selected(texts: list[str], seed: int, rule: str) -> tuple[Crowd, Selected]:
    """Let annotators select random runs of tokens; "gold" is what is known."""
    draw, said = random.Random(seed), {}
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    for n, text in enumerate(texts):
        bounds = tokenize(text, rule)
        tokens = [text[a:b] for a, b in bounds]
        rows = {}
        for worker in ("gold", *draw.sample(WORKERS, 2)):
            spans, place = [], 0
            while place < len(bounds):
                end = min(place + draw.randint(1, 3), len(bounds))
                if draw.random() < 0.4:
                    spans.append(Span(draw.choice(TYPES), place, end))
                place = end
            rows[worker] = list(write(spans, len(tokens), "BIO"))
            chars = [(k, bounds[a][0], bounds[b - 1][1]) for k, a, b in spans]
            said[f"line-{n + 1}", worker] = chars
        item = builder.add_item(
            f"line-{n + 1}", tokens, text=text, token_start=[a for a, _ in bounds],
            gold=rows.pop("gold"), group="line",
        )  # fmt: skip
        for worker, tags in rows.items():
            builder.add_answer(item, worker, tags)
    return builder.build(), said


def spans_of(crowd: Crowd) -> Selected:
    """What a crowd says, in characters."""
    texts, found = list(item_texts(crowd)), {}
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    said, known = answer_rows(crowd), gold_rows(crowd)
    for a in range(len(crowd.answers)):
        n = int(crowd.answers.item[a])
        chars = chars_of(texts[n], said.spans[a])
        found[ids[n], workers[crowd.answers.worker[a]]] = [span[:3] for span in chars]
    for n, name in enumerate(ids):
        if crowd.gold is not None:
            found[name, "gold"] = [span[:3] for span in chars_of(texts[n], known.spans[n])]
    return found


def text_of(crowd: Crowd) -> dict[str, str]:
    return dict(zip(crowd.item_ids.to_pylist(), crowd.texts.to_pylist(), strict=True))


# What the definition of a format says of a file: item, worker, text, type, offsets, what they cover

Row = tuple[str, str, str, list[tuple[str, int, int]]]


def in_label_studio(path: Path) -> Iterator[Row]:
    for task in json.loads(path.read_text(encoding="utf-8")):
        data = task["data"]
        for one in task["annotations"]:
            by = "gold" if one.get("ground_truth") else one["completed_by"]["email"]
            values = [result["value"] for result in one["result"]]
            for v in values:
                assert v["text"] == data["text"][v["start"] : v["end"]]
            yield (
                data["item"],
                by,
                data["text"],
                [(v["labels"][0], v["start"], v["end"]) for v in values],
            )


def in_doccano(path: Path) -> Iterator[Row]:
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        one = json.loads(line)
        yield one["id"], one["annotator"], one["text"], [(k, a, b) for a, b, k in one["label"]]


def in_prodigy(path: Path) -> Iterator[Row]:
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        one = json.loads(line)
        tokens = one["tokens"]
        assert all(one["text"][t["start"] : t["end"]] == t["text"] for t in tokens)
        for span in one["spans"]:
            assert tokens[span["token_start"]]["start"] == span["start"]
            assert tokens[span["token_end"]]["end"] == span["end"]
        spans = [(s["label"], s["start"], s["end"]) for s in one["spans"]]
        yield one["item"], one["_annotator_id"], one["text"], spans


def in_brat(path: Path) -> Iterator[Row]:
    for folder in sorted(path.iterdir()):
        if not folder.is_dir():
            continue
        text = (folder / "line.txt").read_bytes().decode()
        lines = text.split("\n")[:-1]
        starts = np.cumsum([0, *(len(line) + 1 for line in lines)]).tolist()
        spans: list[list[tuple[str, int, int]]] = [[] for _ in lines]
        for row in (folder / "line.ann").read_bytes().decode().split("\n")[:-1]:
            _, head, covers = row.split("\t", 2)
            kind, first, end = head.split(" ")
            assert text[int(first) : int(end)] == covers
            n = int(np.searchsorted(starts, int(first), side="right")) - 1
            spans[n].append((kind, int(first) - starts[n], int(end) - starts[n]))
        for n, line in enumerate(lines):
            yield f"line-{n + 1}", folder.name, line, spans[n]


def in_spans(path: Path) -> Iterator[Row]:
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        one = json.loads(line)
        text, starts, tokens = one["text"], one["token_start"], one["tokens"]
        assert all(text.startswith(t, a) for t, a in zip(tokens, starts, strict=True))

        def chars(spans: list[dict], starts=starts, tokens=tokens) -> list[tuple[str, int, int]]:
            return [
                (s["type"], starts[s["start"]], starts[s["end"] - 1] + len(tokens[s["end"] - 1]))
                for s in spans
            ]

        yield one["item"], "gold", text, chars(one["gold"]["spans"])
        for answer in one["answers"]:
            yield one["item"], answer["worker"], text, chars(answer["spans"])


def in_conll(path: Path) -> Iterator[Row]:
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        name, text, *rows = block.rstrip("\n").split("\n")
        whole = json.loads(text.removeprefix("# text = "))
        cells = [row.split("\t") for row in rows]
        places = [tuple(map(int, cell[1].split(":"))) for cell in cells]
        assert [whole[a:b] for a, b in places] == [cell[0] for cell in cells]
        yield name.removeprefix("# id = "), "gold", whole, merged([c[2] for c in cells], places)


def in_wide(path: Path) -> Iterator[Row]:
    head, *lines = path.read_text(encoding="utf-8").split("\n")
    blocks = "\n".join(lines).rstrip("\n").split("\n\n")
    header = head.split("\t")
    for block in blocks:
        rows = [dict(zip(header, line.split("\t"), strict=True)) for line in block.split("\n")]
        text = json.loads(rows[0]["text"])
        places = [tuple(map(int, row["offsets"].split(":"))) for row in rows]
        assert [text[a:b] for a, b in places] == [row["token"] for row in rows]
        for worker in header[header.index("gold") :]:
            if rows[0][worker] != "?":
                item = f"{rows[0]['doc']}-{rows[0]['sent']}"
                yield item, worker, text, merged([row[worker] for row in rows], places)


def in_long(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {row["item"]: row["text"] for row in rows if row["text"]}
    answers: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        answers.setdefault((row["item"], row["worker"]), []).append(row)
    for (item, worker), tokens in answers.items():
        places = [tuple(map(int, row["offsets"].split(":"))) for row in tokens]
        assert [texts[item][a:b] for a, b in places] == [row["token"] for row in tokens]
        yield item, worker, texts[item], merged([row["label"] for row in tokens], places)


def merged(tags: list[str], places: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Spans of BIO tags in characters, by hand."""
    spans: list[tuple[str, int, int]] = []
    for tag, (a, b) in zip(tags, places, strict=True):
        if tag.startswith("I-"):
            spans[-1] = (spans[-1][0], spans[-1][1], b)
        elif tag.startswith("B-"):
            spans.append((tag[2:], a, b))
    return spans


INDEPENDENT: dict[str, Callable[[Path], Iterator[Row]]] = {
    "label-studio": in_label_studio,
    "doccano": in_doccano,
    "prodigy": in_prodigy,
    "brat": in_brat,
    "spans": in_spans,
    "wide": in_wide,
    "long": in_long,
    "conll": in_conll,
}
NAMES = {"long": "answers.csv", "wide": "answers.tsv"}


def expected(said: Selected, name: str) -> Selected:
    """What of the selections a format has a place for."""
    if name == "conll":
        return {key: spans for key, spans in said.items() if key[1] == "gold"}
    if name == "long":  # the gold stands beside the answers
        return {key: spans for key, spans in said.items() if key[1] != "gold"}
    return said


@pytest.mark.parametrize("name", INDEPENDENT)
def test_texts_and_selections_stand_in_the_file(tmp_path, name):
    texts = own_texts(300)
    crowd, said = selected(texts, 1, "fine")
    path = tmp_path / NAMES.get(name, "out")
    # Without apostrophes before formulas.
    lost = write_crowd(crowd, path, format=name, raw_csv=True)
    if name not in {"brat", "conll", "doccano"}:  # they do not say how the texts are cut
        assert lost == []
    found = {}
    for item, worker, text, spans in INDEPENDENT[name](path):
        assert text == texts[int(item.removeprefix("line-")) - 1]
        found[item, worker] = spans
    wanted = expected(said, name)
    # brat's texts have all lines: what a worker did not see, is there without a span.
    assert {key: spans for key, spans in found.items() if spans or key in wanted} == wanted


# After an aggregation


@pytest.fixture(scope="module")
def result():
    crowd, _ = selected(own_texts(300, seed=3), 3, "fine")
    return goldspan.aggregate(crowd.with_gold(None), "mv-token")


@pytest.mark.parametrize("ending", ["conll", "jsonl", "parquet", "conll.gz"])
def test_an_aggregation_is_read_back_with_its_texts(tmp_path, result, ending):
    path = tmp_path / f"gold.{ending}"
    assert result.write(path) == []
    back = read_crowd(path)
    assert text_of(back) == text_of(result.crowd)
    assert spans_of(back) == {
        key: spans for key, spans in spans_of(result.as_gold()).items() if key[1] == "gold"
    }
    assert back.n_workers == 0


def test_jsonl_of_an_aggregation_counts_characters(tmp_path, result):
    result.write(tmp_path / "spans.jsonl")
    texts = text_of(result.crowd)
    lines = (tmp_path / "spans.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    n_spans = 0
    for line in map(json.loads, lines):
        assert line["text"] == texts[line["item"]]
        for span in line["gold"]:
            n_spans += 1
            assert line["text"][span["start"] : span["end"]] == span["text"]
            first, last = line["tokens"][span["start_token"]], line["tokens"][span["end_token"] - 1]
            assert span["text"].startswith(first)
            assert span["text"].endswith(last)
            assert 0 <= span["confidence"] <= 1
    assert n_spans == len(result.span_array) > 100


def test_the_table_of_spans_and_parquet_have_characters(tmp_path, result):
    texts = text_of(result.crowd)
    rows = result.spans.to_pylist()
    assert len(rows) > 100
    for row in rows:
        assert texts[row["item"]][row["start_char"] : row["end_char"]] == row["text"]
    result.write(tmp_path / "gold.parquet")
    table = pq.read_table(tmp_path / "gold.parquet")
    assert dict(zip(table["item"].to_pylist(), table["text"].to_pylist(), strict=True)) == texts
    found = [span for row in table["spans"].to_pylist() for span in row]
    assert [span["text"] for span in found] == [row["text"] for row in rows]
    assert [span["start_char"] for span in found] == [row["start_char"] for row in rows]


def test_single_labels_keep_their_texts(tmp_path):
    texts = own_texts(50, seed=5)
    builder = CrowdBuilder(ReadOptions(encoding="PLAIN"))
    for n, text in enumerate(texts):
        item = builder.add_item(f"i{n}", [f"i{n}"], text=text, gold=["good"])
        builder.add_answer(item, "ann", ["good" if n % 3 else "bad"])
    crowd = builder.build(single=True)
    for name in ("long", "label-studio", "doccano", "prodigy", "spans", "parquet"):
        path = tmp_path / name
        assert write_crowd(crowd, path, format=name) == []
        assert alike(read_crowd(path, format=name), crowd)
    result = goldspan.aggregate(crowd, "mv-token")
    for ending in ("csv", "jsonl", "parquet", "conll"):
        assert result.write(tmp_path / f"gold.{ending}") == []
    result.write(tmp_path / "raw.csv", raw_csv=True)
    with (tmp_path / "raw.csv").open(encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == texts
    for ending in ("jsonl", "parquet"):
        assert read_crowd(tmp_path / f"gold.{ending}").texts.to_pylist() == texts
        assert read_crowd(tmp_path / f"gold.{ending}").gold is not None


# CoNLL


LINE = '# id = a\n# text = "Ann\\u00a0sang"\nAnn\t0:3\tB-X\nsang\t4:8\tO\n'


def test_text_and_offsets_of_conll_are_read():
    crowd = read_crowd(LINE.encode())
    assert crowd.texts.to_pylist() == ["Ann\u00a0sang"]
    assert crowd.token_start.tolist() == [0, 4]
    assert crowd.tagged_by_id() == {"a": ["B-X", "O"]}


def test_offsets_that_the_text_contradicts_are_refused():
    with pytest.raises(FormatError, match=r"line 3, item a: offsets '4:7' are not those of token"):
        read_crowd(LINE.replace("4:8", "4:7").encode(), format="conll")


def test_a_text_that_is_no_json_string_is_a_comment():
    crowd = read_crowd(b"# text = Ann sang\nAnn\tB-X\nsang\tO\n")
    assert crowd.texts is None


def test_items_without_a_text_have_no_offsets(tmp_path):
    builder = CrowdBuilder()
    builder.add_item("a", ["Ann", "sang"], gold=["B-X", "O"], text="Ann\tsang", token_start=[0, 4])
    builder.add_item("b", ["yes"], gold=["O"])
    crowd = builder.build()
    assert write_crowd(crowd, tmp_path / "x.conll") == []
    assert "yes\t_\tO\n" in (tmp_path / "x.conll").read_text(encoding="utf-8")
    assert read_crowd(tmp_path / "x.conll").texts.to_pylist() == ["Ann\tsang", None]


@pytest.mark.parametrize("name", ["x.conll", "x.tsv", "x.csv"])
def test_text_and_offsets_are_left_out_on_request(tmp_path, name):
    crowd, _ = selected(own_texts(5), 1, "fine")
    lost = write_crowd(crowd, tmp_path / name, text=False)
    assert "the text of 5 items: item 'line-1'" in lost
    assert read_crowd(tmp_path / name).texts is None
    with pytest.raises(InputError, match="always has the text"):
        write_crowd(crowd, tmp_path / "x.json", text=False)


def test_a_token_that_a_cell_cannot_hold_is_told(tmp_path):
    builder = CrowdBuilder()
    builder.add_item(
        "a", ["New\tYork", "."], gold=["B-X", "O"], text="New\tYork.", token_start=[0, 8]
    )
    (lost,) = write_crowd(builder.build(), tmp_path / "x.conll")[:1]
    assert lost == "tokens of 1 item: item 'a', token 0, 'New\\tYork' comes back as 'New York'"
    assert read_crowd(tmp_path / "x.conll").texts.to_pylist() == ["New\tYork."]


def test_items_that_nobody_answered_have_no_gold_in_jsonl(tmp_path):
    builder = CrowdBuilder()
    first = builder.add_item("a", ["x"])
    builder.add_item("b", ["y"])
    builder.add_answer(first, "w", ["B-X"])
    result = goldspan.aggregate(builder.build(), "mv-token")
    assert result.write(tmp_path / "gold.jsonl") == []
    lines = (tmp_path / "gold.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["gold"] is None for line in lines] == [False, True]
    assert read_crowd(tmp_path / "gold.jsonl").tagged_by_id() == {"a": ["B-X"], "b": [None]}


def test_a_column_without_a_name_plays_no_role() -> None:
    """pandas writes its index as one: it was taken for the attempt of every span."""
    table = (
        b",id,text,start,end,label,annotator\n0,1,Ann in Rome,0,3,PER,ann\n"
        b"1,1,Ann in Rome,7,11,LOC,ann\n"
    )
    crowd = read_crowd(table)
    assert crowd.answers_of("1") == {"ann": ["B-PER", "O", "B-LOC"]}
    assert len(crowd.answers) == 1


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (['"said ""no"" twice"', "plain"], ['said "no" twice', "plain"]),
        (['"all of it"', "plain"], ['"all of it"', "plain"]),
        (['"a" and "b"', '"said ""no"""'], ['"a" and "b"', '"said ""no"""']),
        (['"to\\tbe"', '"x \\"y\\""'], ["to\tbe", 'x "y"']),
    ],
)
def test_quotes_of_texts_in_a_tsv(cells: list[str], texts: list[str]) -> None:
    rows = [f"{n}\tann\tyes\t{cell}\n" for n, cell in enumerate(cells)]
    crowd = read_crowd("".join(["item\tworker\tlabel\ttext\n", *rows]).encode())
    assert crowd.texts is not None
    assert crowd.texts.to_pylist() == texts


@pytest.mark.parametrize("declared", ["", "sep=,\r\n"])
def test_line_ends_within_the_texts_of_a_csv(declared: str) -> None:
    table = f'{declared}item,worker,label,text\r\na,ann,yes,"one\r\ntwo\rthree\nfour"\r\n'
    crowd = read_crowd(table.encode())
    assert crowd.texts is not None
    assert crowd.texts.to_pylist() == ["one\r\ntwo\rthree\nfour"]
    assert crowd.item_ids.to_pylist() == ["a"]


def test_a_carriage_return_alone_in_a_csv_of_single_labels(tmp_path: Path) -> None:
    rows = [{"item": "a", "worker": "ann", "label": "yes", "text": "one\rtwo"}]
    crowd = read_crowd(rows)
    assert write_crowd(crowd, tmp_path / "answers.csv") == []
    assert read_crowd(tmp_path / "answers.csv").texts == crowd.texts
    assert goldspan.aggregate(crowd, "mv-token").write(tmp_path / "gold.csv") == []
    assert read_crowd(tmp_path / "gold.csv").texts == crowd.texts


def test_a_long_text_in_a_csv_that_quotes() -> None:
    text = "x" * 200_000 + ', "y"'
    table = f'item,worker,label,text\na,ann,yes,"{text.replace(chr(34), chr(34) * 2)}"\n'
    crowd = read_crowd(table.encode())
    assert crowd.texts is not None
    assert crowd.texts.to_pylist() == [text]
