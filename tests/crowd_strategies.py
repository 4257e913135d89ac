"""Hypothesis strategies for crowds: every combination of what the data model allows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from goldspan.crowd import Answers, Crowd, ReadOptions
from goldspan.crowd.model import ANSWER_COLUMNS, list_array
from goldspan.crowd.source import Source, open_source
from goldspan.spans import Codec, Span, tokenize, write
from goldspan.spans.encoding import get_encoding

ENCODINGS = ("BIO", "IOBES", "IOB", "BILOU", "BMEWO", "PLAIN")

TOKENS = st.sampled_from(
    [
        *("Ann", "Lee", "don't", "U.S", "1,000", "O", "B-PER", "#", "?", '"', "\\n", "a\\b", "{}"),
        *(
            "東京",
            "京",
            "です",
            "😀",
            "👩‍🚀",
            "👍🏽",
            "e\u0301",
            "नमस्ते",
            "ﬁ",
            "𝔘𝔫𝔦",
            "İ",
            "\u200fא",
        ),
    ]
) | st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=4)
ODD_TOKENS = TOKENS | st.sampled_from(
    ["New York", "a\tb", " x", "x ", "\u2028", "a\nb", "\r", "\0"]
)
TYPES = st.sampled_from(["PER", "LOC", "creative-work", "O", "B-PER", "Größe", "人"])
LABELS = st.sampled_from(["pos", "neg", "O", "B-PER", "sehr gut", "😀", "0"])
ODD_LABELS = LABELS | st.sampled_from(["NA", "?", "nan", "null"])
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=4)
MOMENTS = st.integers(0, 253_402_300_799_999)

ATTRIBUTE_COLUMNS: Sequence[st.SearchStrategy] = [
    st.text(max_size=5),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.text(max_size=3), max_size=3),
    st.none(),
]
ATTRIBUTE_NAMES = st.sampled_from(
    [
        "source",
        "split",
        "",
        "text",
        "label",
        "worker",
        "tokens",
        "attributes",
        "spans",
        "item",
        "id",
    ]
)


@st.composite
def span_tags(draw, length: int, types: Sequence[str], encoding: str) -> list[str | None]:
    """Legal tags of random spans; some tokens skipped."""
    spans, place = [], 0
    while place < length:
        size = draw(st.integers(1, 3))
        if place + size <= length and draw(st.booleans()):
            spans.append(Span(draw(st.sampled_from(types)), place, place + size))
        place += size
    return list(write(spans, length, encoding))


@st.composite
def codes_of(draw, length: int, codec: Codec, *, odd: bool) -> list[int]:
    """Codes of one sequence: mostly legal, if `odd` also skipped tokens and any tags at all."""
    complete = codec == Codec.from_types(codec.types, codec.encoding)
    if codec.rules.is_plain or not complete or (odd and draw(st.integers(0, 3)) == 0):
        low = -1 if odd else 0
        return draw(
            st.lists(st.integers(low, len(codec.tags) - 1), min_size=length, max_size=length)
        )
    tags = draw(span_tags(length, codec.types, codec.encoding))
    codes = [codec.index[tag] for tag in tags]
    if odd and draw(st.integers(0, 3)) == 0:
        skipped = draw(st.sets(st.integers(0, length - 1)))
        codes = [-1 if n in skipped else code for n, code in enumerate(codes)]
    return codes


@st.composite
def codecs(draw, encodings: Sequence[str], *, odd: bool) -> Codec:
    """A tag set, if `odd` not always all tags of its types."""
    encoding = draw(st.sampled_from(encodings))
    if get_encoding(encoding).is_plain:
        labels = ODD_LABELS if odd else LABELS
        return Codec.from_types(draw(st.sets(labels, min_size=1, max_size=3)), encoding)
    codec = Codec.from_types(draw(st.sets(TYPES, min_size=1, max_size=3)), encoding)
    if odd and draw(st.integers(0, 9)) == 0:
        return Codec(codec.tags[:1] + codec.tags[2:], encoding)
    return codec


@st.composite
def texts_of(draw, tokens: Sequence[str]) -> tuple[str, list[int]]:
    """A text with these tokens in it, and where each begins."""
    text, starts = draw(st.sampled_from(["", "", " ", "\n"])), []
    for token in tokens:
        starts.append(len(text))
        text += token + draw(st.sampled_from([" ", " ", "  ", "\u00a0"]))
    return text, starts


@st.composite
def crowds(
    draw,
    *,
    encodings: Sequence[str] = ENCODINGS,
    odd: bool = True,
    n_tokens: int = 6,
    single: bool | None = None,
) -> Crowd:
    """Any crowd.

    Args:
        draw: Given by hypothesis.
        encodings: To choose from.
        odd: Whether it may hold what few formats can: broken tag sequences, skipped tokens, gaps in
            the numbers of attempts, columns without a value, odd tokens.
        n_tokens: The most tokens of an item.
        single: Whether all items have one token; None draws it for PLAIN.
    """
    codec = draw(codecs(encodings, odd=odd))
    if single is None:
        single = codec.rules.is_plain and draw(st.booleans())
    n_items = draw(st.integers(1, 3))
    words = ODD_TOKENS if odd else TOKENS
    size = st.integers(1, 1 if single else n_tokens)
    tokens = [draw(st.lists(words, min_size=(k := draw(size)), max_size=k)) for _ in range(n_items)]
    lengths = [len(row) for row in tokens]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = draw(st.lists(NAMES, min_size=n_items, max_size=n_items, unique=True))
    workers = draw(st.lists(NAMES.filter(lambda w: w != "gold"), max_size=3, unique=True))
    gold = None
    if draw(st.booleans()):
        rows = [
            draw(codes_of(k, codec, odd=odd)) if draw(st.integers(0, 3)) else [-1] * k
            for k in lengths
        ]
        gold = np.array([code for row in rows for code in row], np.int16)
    texts, starts = draw(_texts(tokens))
    return Crowd(
        item_ids=pa.array(ids, pa.string()),
        tokens=list_array(pa.array([t for row in tokens for t in row], pa.string()), offsets),
        worker_ids=pa.array(workers, pa.string()),
        tagset=codec,
        answers=draw(_answers(lengths, len(workers), codec, odd=odd)),
        groups=draw(st.none() | _column(NAMES | st.none() if odd else NAMES, n_items)),
        gold=gold,
        texts=texts,
        token_start=starts,
        attributes=draw(st.none() | _attributes(n_items)),
    )


@st.composite
def common_crowds(draw, *, columns: Sequence[str] = (), texts: bool | None = None) -> Crowd:
    """Crowds of which most formats hold everything: BIO spans or single labels, all of them used.

    Args:
        draw: Given by hypothesis.
        columns: Of `started`, `submitted`, `cost`, `groups`, `attributes`, what there may be.
        texts: Whether all items have texts that goldspan's tokenizer cuts; None leaves it open.
    """
    encoding = draw(st.sampled_from(["BIO", "BIO", "PLAIN"]))
    crowd = draw(crowds(encodings=(encoding,), odd=False, single=encoding == "PLAIN" or None))
    if texts is not None:
        crowd = _with_texts(crowd) if texts else replace(crowd, texts=None, token_start=None)
    elif crowd.texts is not None and crowd.token_start is None:
        crowd = replace(crowd, texts=None)
    for name in ("groups", "attributes"):
        if name not in columns:
            crowd = replace(crowd, **{name: None})
    return only_used(crowd, columns)


def only_used(crowd: Crowd, columns: Sequence[str]) -> Crowd:
    """Leave out workers, types and columns of which nothing is used."""
    seen = np.unique(crowd.answers.codes)
    if crowd.gold is not None:
        seen = np.union1d(seen, crowd.gold)
    used = [crowd.tagset.tags[code] for code in seen if code >= 0]
    tagset = Codec.from_tags(used, crowd.tagset.encoding)
    table = np.array([*(tagset.index.get(tag, -1) for tag in crowd.tagset.tags), -1], np.int16)
    answers = crowd.answers
    there = np.unique(answers.worker)
    number = np.full(crowd.n_workers + 1, -1, np.int32)
    number[there] = np.arange(len(there))
    times = {name: getattr(answers, name) for name in ANSWER_COLUMNS}
    for name, column in times.items():
        if name not in columns or column is None or (column < 0).all():
            times[name] = None
    if times["started"] is not None:
        late = times["submitted"]
        times["started"] = None if late is None else np.where(late < 0, -1, times["started"])
        if late is not None and (times["started"] < 0).all():
            times["started"] = None
    gold = None if crowd.gold is None or (crowd.gold < 0).all() else table[crowd.gold]
    answers = replace(answers, codes=table[answers.codes], worker=number[answers.worker], **times)
    worker_ids = crowd.worker_ids.take(pa.array(there))
    return replace(crowd, tagset=tagset, answers=answers, worker_ids=worker_ids, gold=gold)


def _with_texts(crowd: Crowd) -> Crowd:
    """The same crowd with other tokens: words of a text that goldspan cuts into just these."""
    words = ["Ann", "東", "京", "😀", "naïve", "1000", "!", "👩‍🚀", "e\u0301"]
    texts, tokens, starts = [], [], []
    for length in np.diff(crowd.offsets).tolist():
        row = [words[(length * 3 + n) % len(words)] for n in range(length)]
        texts.append(" " + "  ".join(row))
        bounds = tokenize(texts[-1], "fine")
        assert [texts[-1][a:b] for a, b in bounds] == row
        tokens += row
        starts += [a for a, _ in bounds]
    return replace(
        crowd,
        texts=pa.array(texts, pa.string()),
        tokens=list_array(pa.array(tokens, pa.string()), crowd.offsets),
        token_start=np.array(starts, np.int32),
    )


def alike(found: Crowd | None, wanted: Crowd) -> bool:
    """Return whether two crowds are the same, but for what follows from a text that is known.

    The places of tokens do, and the one token of a single label. None is what was refused.
    """
    if found is None:
        return False
    found = without_places(found, wanted)
    if found.is_classification and wanted.is_classification:
        found, wanted = (
            replace(
                crowd,
                texts=pa.array(_texts_or_tokens(crowd), pa.string()),
                tokens=pa.array([[""]] * crowd.n_items, pa.list_(pa.string())),
                token_start=None,
            )
            for crowd in (found, wanted)
        )
    return found == wanted


def _texts_or_tokens(crowd: Crowd) -> list[str]:
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    tokens = crowd.tokens.flatten().to_pylist()
    return [token if text is None else text for text, token in zip(texts, tokens, strict=True)]


def without_places(found: Crowd, wanted: Crowd) -> Crowd:
    """Leave out the places of tokens that were found in texts, which is no difference."""
    if wanted.token_start is not None or found.token_start is None or wanted.texts is None:
        return found
    texts, start = found.texts.to_pylist(), found.token_start.tolist()
    for n, tokens in enumerate(found.tokens_list):
        for token, place in zip(tokens, start[found.offsets[n] :], strict=False):
            assert texts[n][place : place + len(token)] == token
    return replace(found, token_start=None)


@st.composite
def _answers(draw, lengths: Sequence[int], n_workers: int, codec: Codec, *, odd: bool) -> Answers:
    keys = []
    for item in range(len(lengths)):
        for worker in range(n_workers):
            attempts = draw(st.sampled_from([[0], [0], [0, 1], []]))
            if odd and draw(st.integers(0, 9)) == 0:
                attempts = [1, 7]
            keys += [(item, worker, attempt) for attempt in attempts]
    keys = draw(st.permutations(keys))
    codes = [draw(codes_of(lengths[item], codec, odd=odd)) for item, _, _ in keys]
    column = st.lists(MOMENTS | st.just(-1), min_size=len(keys), max_size=len(keys))
    times = {}
    for name in ANSWER_COLUMNS:
        drawn = draw(st.none() | column) if keys else None
        times[name] = None if drawn is None else np.array(drawn, np.int64)
    return Answers(
        np.array([key[0] for key in keys], np.int32),
        np.array([key[1] for key in keys], np.int32),
        np.concatenate([[0], np.cumsum([len(row) for row in codes])]).astype(np.int64),
        np.array([code for row in codes for code in row], np.int16),
        np.array([key[2] for key in keys], np.int16),
        **times,
    )


@st.composite
def _texts(draw, tokens: Sequence[Sequence[str]]) -> tuple[pa.Array | None, np.ndarray | None]:
    kind = draw(st.sampled_from(["none", "none", "texts", "places", "some", "no value"]))
    if kind == "none":
        return None, None
    if kind == "no value":
        return pa.nulls(len(tokens), pa.string()), None
    drawn = [draw(texts_of(row)) for row in tokens]
    texts = [text for text, _ in drawn]
    if kind == "some":
        texts = [text if draw(st.booleans()) else None for text in texts]
    starts = np.array([place for _, row in drawn for place in row], np.int32)
    return pa.array(texts, pa.string()), starts if kind == "places" else None


@st.composite
def _column(draw, values: st.SearchStrategy, length: int) -> pa.Array:
    return pa.array(draw(st.lists(values, min_size=length, max_size=length)), pa.string())


@st.composite
def _attributes(draw, n_items: int) -> pa.Table:
    columns = {}
    for name in draw(st.lists(ATTRIBUTE_NAMES, min_size=1, max_size=2, unique=True)):
        values = draw(st.sampled_from(ATTRIBUTE_COLUMNS))
        columns[name] = draw(st.lists(values | st.none(), min_size=n_items, max_size=n_items))
    return pa.table(columns)


def lines_of(*records: dict) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode()


def folder_of(**files: str | bytes) -> Source:
    """A folder in memory; `__` in a name stands for `/`, and `_DOT_` for a point."""
    found = {}
    for name, data in files.items():
        path = name.replace("__", "/").replace("_DOT_", ".")
        found[path] = Source(f"folder/{path}", data.encode() if isinstance(data, str) else data)
    return Source("folder", files=found)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-1, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["Ann sang", "PER", "accept", "BIO", "label", "[", "2021-03-09T21:52:49Z"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def records(draw, keys: Sequence[str], good: Sequence[dict]) -> list[dict]:
    """Records of a format in which some fields have any value at all, or are not there."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        one = dict(draw(st.sampled_from(good)))
        for key in draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)):
            one[key] = draw(JSON_VALUES)
        for key in draw(st.lists(st.sampled_from(keys), max_size=1)):
            one.pop(key, None)
        found.append(one)
    return found


def read_as(module: ModuleType, source: object, **options: object) -> Crowd:
    """Read with the module of a format; `read_crowd` without the guess."""
    return module.read(open_source(source), ReadOptions(**options))
