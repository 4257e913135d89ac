#!/usr/bin/env python3
"""Build examples/crowd.tsv: seven simulated workers label the newsroom corpus.

The text and its gold spans come from newsroom.txt. Every worker has a habit:

======  ==========================================================================
worker  habit
======  ==========================================================================
ana     careful; answers nearly everything
bo      finds the spans but mixes up ORG and LOC
chi     opens many spans one token early (B- on the token before, then I-)
dov     leaves many spans unlabelled and skips single tokens (``?``)
eli     good at PER and LOC, forgets MISC, glues neighbouring spans together
fay     opens many spans with I- instead of B-, and ends spans one token late
gus     spammer: never looks at the text, often answers nothing but O
======  ==========================================================================

The output is wide TSV (doc, sent, token, gold, one column per worker) with a blank
line between sentences and ``?`` where a worker gave no answer. Each pair of worker
and sentence has a random stream of its own, so a rebuild gives the same bytes, and
editing one sentence leaves the answers to the others alone.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent
TYPES = ("PER", "LOC", "ORG", "MISC")
MISSING = "?"
MIN_ANSWERS = 3
PIECE = re.compile(rf"\[(?P<span>[^\]]+)\](?P<kind>{'|'.join(TYPES)})(?!\S)|(?P<word>\S+)")


class Span(NamedTuple):
    """Tokens start (included) to end (excluded) of one type."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Sentence:
    """One sentence of the corpus with its gold spans."""

    doc: str
    sent: int
    tokens: tuple[str, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Habit:
    """How a worker answers; all numbers are probabilities."""

    answers: float  # gives an answer to a sentence
    miss: float = 0.0  # overlooks a span
    miss_misc: float = 0.0  # overlooks a MISC span (instead of miss, if larger)
    wrong: float = 0.0  # gives a span another type at random
    org_to_loc: float = 0.0  # calls an ORG a LOC
    loc_to_org: float = 0.0  # calls a LOC an ORG
    early: float = 0.0  # starts a span one token early
    late: float = 0.0  # ends a span one token late
    short: float = 0.0  # loses the last token of a longer span
    glue: float = 0.0  # joins a span to a neighbour at most one token away
    extra: float = 0.0  # labels a capitalised token outside every span
    inside: float = 0.0  # opens a span with I-
    skip: float = 0.0  # skips a token
    spam: bool = False  # does not look at the text


WORKERS: Mapping[str, Habit] = {
    "ana": Habit(0.95, miss=0.04, wrong=0.03, short=0.04, extra=0.02),
    "bo": Habit(0.70, miss=0.10, wrong=0.04, org_to_loc=0.50, loc_to_org=0.30, extra=0.03),
    "chi": Habit(0.60, miss=0.12, wrong=0.06, early=0.60, extra=0.03),
    "dov": Habit(0.50, miss=0.45, wrong=0.05, short=0.06, skip=0.08),
    "eli": Habit(0.60, miss=0.10, miss_misc=0.80, wrong=0.04, glue=0.65, extra=0.03),
    "fay": Habit(0.50, miss=0.15, wrong=0.10, late=0.45, extra=0.06, inside=0.60),
    "gus": Habit(0.95, spam=True),
}


def parse_line(line: str) -> tuple[tuple[str, ...], tuple[Span, ...]]:
    """Split one marked-up sentence into its tokens and its spans."""
    tokens: list[str] = []
    spans: list[Span] = []
    for piece in PIECE.finditer(line):
        start = len(tokens)
        tokens += (piece["span"] or piece["word"]).split(" ")
        if piece["kind"]:
            spans.append(Span(start, len(tokens), piece["kind"]))
    if any(not token or "[" in token or "]" in token for token in tokens):
        message = f"bad markup: {line}"
        raise ValueError(message)
    return tuple(tokens), tuple(spans)


def read_corpus(path: Path) -> list[Sentence]:
    """Read the corpus; a line ``# N01`` opens an article."""
    sentences: list[Sentence] = []
    doc, sent = "", 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            doc, sent = line[2:], 0
        elif line:
            sent += 1
            sentences.append(Sentence(doc, sent, *parse_line(line)))
    return sentences


def stream(seed: int, worker: str, sentence: Sentence) -> np.random.Generator:
    """Return the random stream of one worker on one sentence."""
    name = f"{seed}:{worker}:{sentence.doc}-{sentence.sent}"
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def to_bio(spans: Iterable[Span], length: int) -> list[str]:
    """Write spans as BIO tags; where two spans overlap, the first one wins."""
    tags = ["O"] * length
    for span in spans:
        free = [i for i in range(span.start, span.end) if tags[i] == "O"]
        for place, i in enumerate(free):
            tags[i] = f"{'I' if place else 'B'}-{span.kind}"
    return tags


def choose_kind(habit: Habit, kind: str, rng: np.random.Generator) -> str:
    """Return the type the worker gives to a span of type kind."""
    swap, wrong, other = rng.random(3)
    if kind == "ORG" and swap < habit.org_to_loc:
        return "LOC"
    if kind == "LOC" and swap < habit.loc_to_org:
        return "ORG"
    if wrong < habit.wrong:
        rest = [each for each in TYPES if each != kind]
        return rest[int(other * len(rest))]
    return kind


def choose_ends(habit: Habit, span: Span, length: int, rng: np.random.Generator) -> Span:
    """Return the span with the boundaries the worker gives to it."""
    early, late, short = rng.random(3)
    start = span.start - int(early < habit.early and span.start > 0)
    end = span.end + int(late < habit.late and span.end < length)
    end -= int(short < habit.short and end - start > 1)
    return Span(start, end, span.kind)


def glue_spans(habit: Habit, spans: Sequence[Span], rng: np.random.Generator) -> list[Span]:
    """Join spans that touch or have one token between them; the first type stays."""
    glued: list[Span] = []
    for span in spans:
        near = bool(glued) and span.start - glued[-1].end <= 1
        if near and rng.random() < habit.glue:
            glued[-1] = glued[-1]._replace(end=span.end)
        else:
            glued.append(span)
    return glued


def extra_spans(habit: Habit, sentence: Sentence, rng: np.random.Generator) -> list[Span]:
    """Return one-token spans on capitalised words that are no names."""
    taken = {i for span in sentence.spans for i in range(span.start, span.end)}
    found: list[Span] = []
    for i, token in enumerate(sentence.tokens):
        draw = rng.random()
        if token[0].isupper() and i not in taken and draw < habit.extra:
            found.append(Span(i, i + 1, TYPES[rng.integers(len(TYPES))]))
    return found


def read_and_label(habit: Habit, sentence: Sentence, rng: np.random.Generator) -> list[str]:
    """Label a sentence as a worker who reads it does."""
    length = len(sentence.tokens)
    spans: list[Span] = []
    for span in sentence.spans:
        miss = max(habit.miss, habit.miss_misc) if span.kind == "MISC" else habit.miss
        missed = rng.random() < miss
        labelled = choose_ends(habit, span, length, rng)
        labelled = labelled._replace(kind=choose_kind(habit, span.kind, rng))
        if not missed:
            spans.append(labelled)
    tags = to_bio(glue_spans(habit, spans, rng) + extra_spans(habit, sentence, rng), length)
    for i, (inside, skip) in enumerate(rng.random((length, 2))):
        if tags[i].startswith("B-") and inside < habit.inside:
            tags[i] = "I" + tags[i][1:]
        if skip < habit.skip:
            tags[i] = MISSING
    return tags


def spam_labels(length: int, rng: np.random.Generator) -> list[str]:
    """Label without reading: all O, one favourite tag here and there, or pure noise."""
    mood = rng.random()
    if mood < 1 / 3:
        return ["O"] * length
    if mood < 2 / 3:
        return [("O", "B-PER")[int(hit)] for hit in rng.random(length) < 1 / 3]
    choices = ["O", *(f"{prefix}-{kind}" for kind in TYPES for prefix in "BI")]
    return [choices[i] for i in rng.integers(len(choices), size=length)]


def label_sentence(sentence: Sentence, seed: int) -> dict[str, list[str]]:
    """Return the answers to one sentence by worker; at least MIN_ANSWERS of them."""
    streams = {worker: stream(seed, worker, sentence) for worker in WORKERS}
    # Below one the worker answers; the least unwilling others step in where too few do.
    unwilling = {w: rng.random() / WORKERS[w].answers for w, rng in streams.items()}
    order = sorted(unwilling, key=unwilling.__getitem__)
    willing = {w for place, w in enumerate(order) if unwilling[w] < 1 or place < MIN_ANSWERS}
    return {
        worker: spam_labels(len(sentence.tokens), rng)
        if WORKERS[worker].spam
        else read_and_label(WORKERS[worker], sentence, rng)
        for worker, rng in streams.items()
        if worker in willing
    }


def table_lines(sentences: Iterable[Sentence], seed: int) -> Iterator[str]:
    """Yield the lines of the TSV file without line ends."""
    yield "\t".join(("doc", "sent", "token", "gold", *WORKERS))
    for number, sentence in enumerate(sentences):
        if number:
            yield ""
        length = len(sentence.tokens)
        answers = label_sentence(sentence, seed)
        columns = [answers.get(worker, [MISSING] * length) for worker in WORKERS]
        rows = zip(sentence.tokens, to_bio(sentence.spans, length), *columns, strict=True)
        for row in rows:
            yield "\t".join((sentence.doc, str(sentence.sent), *row))


def from_bio(tags: Sequence[str]) -> set[Span]:
    """Read spans from tags; an I- that continues nothing opens a span, ``?`` is O."""
    spans: set[Span] = set()
    start, kind = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        here = tag[2:]
        if kind and (here != kind or tag.startswith("B-")):
            spans.add(Span(start, i, kind))
            kind = ""
        if here and not kind:
            start, kind = i, here
    return spans


def vote(tags: Iterable[str]) -> str:
    """Return the most frequent tag of one token; a tie gives O."""
    top = Counter(tag for tag in tags if tag != MISSING).most_common(2)
    if not top or (len(top) > 1 and top[0][1] == top[1][1]):
        return "O"
    return top[0][0]


def span_f1(pairs: Iterable[tuple[Sequence[Span], Sequence[str]]]) -> float:
    """Return the micro-averaged F1 of tags against gold spans."""
    right = given = gold = 0
    for spans, tags in pairs:
        found = from_bio(tags)
        right += len(found & set(spans))
        given += len(found)
        gold += len(spans)
    return 2 * right / (given + gold)


def report_lines(sentences: Sequence[Sentence], seed: int) -> Iterator[str]:
    """Yield counts, the F1 of each worker and the F1 of the token majority."""
    answers = [label_sentence(sentence, seed) for sentence in sentences]
    counts = Counter(span.kind for sentence in sentences for span in sentence.spans)
    tokens = sum(len(sentence.tokens) for sentence in sentences)
    docs = len({sentence.doc for sentence in sentences})
    yield f"{docs} articles, {len(sentences)} sentences, {tokens} tokens"
    kinds = ", ".join(f"{kind} {counts[kind]}" for kind in TYPES)
    yield f"{counts.total()} spans: {kinds}"
    yield f"{sum(map(len, answers)) / len(sentences):.2f} answers per sentence"
    both = list(zip(sentences, answers, strict=True))
    for worker in WORKERS:
        own = [(sentence.spans, given[worker]) for sentence, given in both if worker in given]
        yield f"{worker:8} {len(own):3} answers  F1 {span_f1(own):.3f}"
    voted = [
        (sentence.spans, [vote(tags) for tags in zip(*given.values(), strict=True)])
        for sentence, given in both
    ]
    yield f"{'majority':8} {len(voted):3} sentences F1 {span_f1(voted):.3f}"


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table; with --report print what is in it."""
    parser = argparse.ArgumentParser(description="Build crowd.tsv from newsroom.txt.")
    parser.add_argument("--corpus", type=Path, default=HERE / "newsroom.txt", help="input file")
    parser.add_argument("--out", type=Path, default=HERE / "crowd.tsv", help="output file")
    parser.add_argument("--seed", type=int, default=7, help="random seed (default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="print counts and F1 scores")
    options = parser.parse_args(argv)
    sentences = read_corpus(options.corpus)
    text = "\n".join(table_lines(sentences, options.seed)) + "\n"
    options.out.write_text(text, encoding="utf-8", newline="\n")
    if options.report:
        print("\n".join(report_lines(sentences, options.seed)))


if __name__ == "__main__":
    main()
