"""Span JSONL in columns: the same crowd, or the same words, as record by record."""

from __future__ import annotations

import copy
import io
import json
import random

import numpy as np
import pytest

from goldspan.crowd import read_crowd, write_crowd
from goldspan.crowd.formats import span_jsonl
from goldspan.errors import GoldspanError
from goldspan.spans import tokenize

TEXTS = ["Ann Lee sang in Köln.", "Oslo, 1999: no rain", "東京 is big", "to be, or not to be 🙂"]
KINDS = ["PER", "LOC", "ORG"]
ANSWER_COLUMNS = ("item", "worker", "offset", "codes", "attempt", "started", "submitted", "cost")


def spans_of(rng, bounds, *, with_text=None):
    """Draw spans that do not overlap, of whole tokens."""
    spans, place = [], 0
    while place < len(bounds):
        size = rng.randint(1, 2)
        if rng.random() < 0.4 and place + size <= len(bounds):
            start, end = bounds[place][0], bounds[place + size - 1][1]
            spans.append({"type": rng.choice(KINDS), "start": start, "end": end})
            if with_text:
                spans[-1]["text"] = with_text[start:end]
        place += size
    rng.shuffle(spans)
    return spans


def answer(rng, worker, bounds, **more):
    return {"worker": worker, "spans": spans_of(rng, bounds, **more)}


def flat(rng):
    """An answer per line, the items mixed."""
    lines = []
    for n, text in enumerate(TEXTS):
        bounds = tokenize(text)
        who = rng.sample("abcd", rng.randint(1, 4))
        lines += [{"item": f"t{n}", "text": text, **answer(rng, one, bounds)} for one in who]
    rng.shuffle(lines)
    return lines


def nested(rng):
    """An item per line; spans quote the text, answers have times and prices, items documents."""
    lines = []
    for n, text in enumerate(TEXTS):
        bounds = tokenize(text)
        answers = [answer(rng, worker, bounds, with_text=text) for worker in rng.sample("abcd", 3)]
        for one in answers:
            one |= {"started": rng.randint(0, 9**9), "attempt": 0, "cost": rng.randint(0, 99)}
        lines.append({"id": f"t{n}", "doc": f"d{n % 2}", "text": text, "answers": answers})
        lines[-1]["item"] = lines[-1].pop("id")
    return lines


def tokens(rng):
    """Tokens are given, and counted."""
    words = [text.split() for text in TEXTS]
    places = [[(n, n + 1) for n in range(len(row))] for row in words]
    return [
        {"item": f"t{n}", "tokens": row, "answers": [answer(rng, who, places[n]) for who in "ab"]}
        for n, row in enumerate(words)
    ]


def own(rng):
    """What goldspan writes."""
    out = io.StringIO()
    out.writelines(span_jsonl.lines(read_crowd(jsonl(nested(rng)), format="spans")))
    return [json.loads(line) for line in out.getvalue().splitlines()]


LAYOUTS = {one.__name__: one for one in (flat, nested, tokens, own)}


def jsonl(lines):
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def outcome(data, **options):
    """Return all of a crowd, or the words that refuse it."""
    try:
        crowd = read_crowd(data, format="spans", **options)
    except GoldspanError as error:
        return str(error)
    columns = {name: getattr(crowd.answers, name) for name in ANSWER_COLUMNS}
    kinds = {name: None if c is None else (c.dtype, c.tolist()) for name, c in columns.items()}
    starts = None if crowd.token_start is None else crowd.token_start.tolist()
    return (
        crowd.item_ids.to_pylist(), crowd.tokens.to_pylist(), crowd.worker_ids.to_pylist(),
        crowd.tagset, crowd.groups, crowd.texts, starts, crowd.import_report, kinds,
        crowd.attributes, crowd.gold is None,
    )  # fmt: skip


def by_record(data, **options):
    """The same of the records: a blank line at the end is not read in columns."""
    return outcome(data + b"\n\n", **options)


@pytest.fixture
def records(monkeypatch):
    """Count the records that are read one by one."""
    read, seen = span_jsonl._read_item, []
    monkeypatch.setattr(span_jsonl, "_read_item", lambda *words: (seen.append(1), read(*words)))
    return seen


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(5))
def test_columns_give_the_crowd_that_records_give(layout, seed, records):
    data = jsonl(LAYOUTS[layout](random.Random(seed)))
    found = outcome(data)
    assert not records
    assert found == by_record(data)
    assert records


@pytest.mark.parametrize("options", [{"encoding": "IOBES"}, {"labels": {"PER": "X"}},
                                     {"repeated": "first"}, {"strict": True},
                                     {"rename_workers": {"a": "z"}}])  # fmt: skip
def test_options_mean_the_same(options, records):
    data = jsonl(flat(random.Random(1)) + flat(random.Random(2)))
    found = outcome(data, **options)
    assert not records
    assert found == by_record(data, **options)


def test_items_with_tokens_beside_items_with_texts_count_each_their_own():
    lines = [*tokens(random.Random(0))[:2], *nested(random.Random(1))[2:]]
    found = outcome(jsonl(lines))
    assert not isinstance(found, str)
    assert found == by_record(jsonl(lines))


def test_whoever_asks_is_told_to_the_end_and_never_backwards(records):
    seen = []
    lines = flat(random.Random(0))
    options = {"format": "spans", "progress": lambda *so_far: seen.append(so_far)}
    read_crowd(jsonl(lines), **options)
    assert not records
    assert seen == sorted(set(seen))
    assert seen[-1] == (len(lines), len(lines))


@pytest.mark.parametrize(
    "options",
    [{"encoding": "PLAIN"}, {"workers": ("a", "b")}, {"offsets": "utf16"}, {"cut": "expand"},
     {"overlapping": "refuse"}, {"tokens": "space"}],
)  # fmt: skip
def test_options_that_ask_for_care_mean_the_same(options):
    data = jsonl(nested(random.Random(1)))
    assert outcome(data, **options) == by_record(data, **options)


def spans_in(line):
    return line["answers"][0]["spans"] if "answers" in line else line["spans"]


def answer_in(line):
    return line["answers"][0] if "answers" in line else line


VALUES = [None, True, 1, -1, 1.5, 10**30, "", " ", "x", [], [1], {}, {"a": 1}, "null", "\x00"]
"""What stands in the place of a value."""


def set_field(line, rng):
    line[rng.choice([*line, "extra", "gold", "unit", "tokens", "spans", "worker", "answers"])] = (
        rng.choice(VALUES)
    )


def set_answer_field(line, rng):
    one = answer_in(line)
    one[rng.choice([*one, "attempt", "started", "skipped", "label", "tags"])] = rng.choice(VALUES)


def set_span_field(line, rng):
    span = {"type": "PER", "start": 0, "end": 1}
    spans_in(line).append(span)
    span[rng.choice(["type", "start", "end", "text", "label"])] = rng.choice(VALUES)


def move_span(line, rng):
    spans_in(line).append({"type": "PER", "start": rng.randint(0, 9), "end": rng.randint(0, 30)})


def drop_field(line, rng):
    one = rng.choice([line, answer_in(line)])
    one.pop(rng.choice([*one]))


def list_span(line, _):
    spans_in(line)[:] = [[0, 1, "PER"]]


DAMAGE = (set_field, set_answer_field, set_span_field, move_span, drop_field, list_span)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda one: one.__name__)
def test_whatever_is_wrong_or_unusual_is_judged_as_in_records(layout, damage):
    rng = random.Random(f"{layout} {damage.__name__}")
    refused = 0
    for _ in range(20):
        lines = copy.deepcopy(LAYOUTS[layout](rng))
        items = [line for line in lines if "goldspan" not in line and spans_in(line) is not None]
        damage(rng.choice(items), rng)
        data = jsonl(lines)
        found = outcome(data)
        assert found == by_record(data)
        refused += isinstance(found, str)
    assert refused or damage is list_span


@pytest.mark.parametrize(
    "broken",
    [b'{"item": "a", "item": "b"}', b'{"item": NaN}', b'{"item": "\\ud800"}', b"[]", b"{", b"x",
     b'{"item": "a", "text": "Ann", "worker": "a", "spans": []} {}', b'{"goldspan": 1}'],
)  # fmt: skip
def test_broken_lines_are_worded_as_in_records(broken):
    data = jsonl(flat(random.Random(0))) + broken + b"\n"
    found = outcome(data)
    assert isinstance(found, str)
    assert found == by_record(data)


def test_a_large_file_is_read_in_columns_and_written_again(tmp_path, records):
    rng = random.Random(0)
    text = TEXTS[0]
    lines = [
        {"item": f"t{n}", "text": text, **answer(rng, f"w{k}", tokenize(text))}
        for n in range(300)
        for k in range(5)
    ]
    crowd = read_crowd(jsonl(lines), format="spans")
    assert len(crowd.answers) == 1500
    write_crowd(crowd, tmp_path / "own.jsonl", format="spans")
    again = read_crowd(tmp_path / "own.jsonl")
    assert not records
    assert np.array_equal(again.answers.codes, crowd.answers.codes)
