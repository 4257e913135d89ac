"""Tables that people have, altered at random: no crowd is read from one without answers."""

from __future__ import annotations

import csv
import io
import random

import pytest

from goldspan.crowd import read_crowd
from goldspan.errors import GoldspanError

WORDS = (
    *("soup", "bread", "Oslo", "Rome", "cold", "warm", "river"),
    *("road", "letter", "friend", "garden", "window", "music", "paper"),
)
NAMES = {
    "number": ("id", "row", "code", "amount", "size", "year", "zip", "order_id", "Unnamed: 0"),
    "fraction": ("price", "weight", "score", "lat", "lon", "share", "p_value", "temperature"),
    "text": ("text", "title", "description", "comment", "body", "notes", "address", "abstract"),
    "word": ("city", "colour", "brand", "status", "country", "author", "sex", "department"),
    "flag": ("active", "is_new", "passed", "vip", "deleted", "paid", "toxic", "spam"),
    "name": ("name", "owner", "customer", "email", "sender", "file", "product", "seller"),
    "date": ("date", "created_at", "time", "updated", "born", "day", "delivered", "due"),
}


def cell(kind, row, rng):
    return {
        "number": lambda: row if rng.random() < 0.5 else rng.randint(0, 10**4),
        "fraction": lambda: round(rng.random() * 50, 3),
        "text": lambda: " ".join(rng.choices(WORDS, k=rng.randint(4, 12))) + f" {row}",
        "word": lambda: rng.choice(WORDS[:5]),
        "flag": lambda: rng.choice(("0", "1")),
        "name": lambda: rng.choice(WORDS) + str(rng.randint(1, 60)),
        "date": lambda: f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    }[kind]()


def other_table(rng):
    """Return header and rows of a table of other facts."""
    kinds = rng.choices(sorted(NAMES), k=rng.randint(2, 8))
    header = [rng.choice(NAMES[kind]) for kind in kinds]
    return header, [[cell(kind, n, rng) for kind in kinds] for n in range(rng.randint(2, 60))]


def answer_table(rng):
    """Return header and rows of a table of answers, and what each row says."""
    names = (
        rng.choice(("item", "tweet_id", "qid", "url", "doc_id", "sample", "HITId")),
        rng.choice(("worker", "annotator", "rater_id", "Coder", "workerId", "labeler", "judge")),
        rng.choice(("label", "sentiment", "answer", "class", "is_spam", "stance", "Category")),
    )
    labels, n_workers = ("pos", "neg", "neu")[: rng.randint(2, 3)], rng.randint(3, 6)
    rows = [
        (f"t{item}", f"p{worker}", rng.choice(labels))
        for item in range(rng.randint(4, 20))
        for worker in rng.sample(range(n_workers), rng.randint(2, 3))
    ]
    extra = rng.sample(("fraction", "date", "text"), rng.randint(0, 2))
    header = [*names, *(rng.choice(NAMES[kind]) for kind in extra)]
    told = [[*row, *(cell(kind, int(row[0][1:]), rng) for kind in extra)] for row in rows]
    if rng.random() < 0.5:
        rng.shuffle(told)
    order = rng.sample(range(len(header)), len(header))
    return [header[n] for n in order], [[row[n] for n in order] for row in told], rows


def written(header, rows, rng):
    """Write a table as some program would, at times damaged."""
    mark = rng.choice(",,,\t;")
    buffer = io.StringIO()
    quotes = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)) if mark != "\t" else csv.QUOTE_MINIMAL
    out = csv.writer(buffer, delimiter=mark, quoting=quotes, lineterminator="\n")
    out.writerows([header, *rows] if header else rows)
    return buffer.getvalue()


def damaged(text, rng):
    """Alter a table as copying, spreadsheets and editors do."""
    lines = text.split("\n")
    for _ in range(rng.randint(0, 3)):
        n = rng.randrange(len(lines))
        how = rng.randrange(9)
        if how == 0:
            del lines[n]
        elif how == 1:
            lines.insert(n, "")
        elif how == 2:
            lines.insert(n, lines[n])
        elif how == 3:
            lines[n] = lines[n][: rng.randint(0, len(lines[n]))]
        elif how == 4:
            lines = [line + "," for line in lines]
        elif how == 5:
            lines = [line.replace(" ", "\u00a0") for line in lines]
        elif how == 6:
            lines[n] = lines[n].replace("0", "\u0660").upper()
        elif how == 7:
            lines = [f"{n},{line}" for n, line in enumerate(lines)]
        else:
            lines = lines[1:] or lines
    ends = rng.choice(("\n", "\n", "\r\n", "\r"))
    data = ends.join(lines).encode(rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16")))
    return data[: rng.randint(1, len(data))] if rng.random() < 0.05 and data else data


def is_crowd(data):
    """Whether a crowd with workers is read from a file, with a note or without."""
    try:
        crowd = read_crowd(data)
    except GoldspanError:
        return False
    return crowd.n_workers > 0


def rates(n):
    """Return how many of `n` tables of other facts are crowds, and of answers are read right."""
    wrong = right = 0
    for seed in range(n):
        rng = random.Random(seed)
        header, rows = other_table(rng)
        wrong += is_crowd(damaged(written(header, rows, rng), rng))
        header, rows, said = answer_table(rng)
        try:
            crowd = read_crowd(written(header, rows, rng).encode())
        except GoldspanError:
            continue
        read = {
            (item, worker, label)
            for item in crowd.item_ids.to_pylist()
            for worker, [label] in crowd.answers_of(item).items()
        }
        right += read == {*said}
    return wrong / n, right / n


@pytest.mark.parametrize("n", [300, 5000])
def test_no_crowd_is_read_from_a_table_without_answers(n):
    wrong, right = rates(n)
    assert wrong <= 0.002
    assert right >= 0.99
