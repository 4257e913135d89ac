"""From label strings to a tag set: renaming, guessing the encoding, rejecting what is not a tag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec, Tagged
from goldspan.spans.corpus import token_flags
from goldspan.spans.encoding import (
    BAD_OPEN,
    ENCODINGS,
    STARTS,
    Encoding,
    Role,
    TagFault,
    get_encoding,
    read_tag,
)

MAX_STRIPPED = 20
"""Labels with white space at their ends that are listed."""

_TRIED = ("BIO", "IOBES", "BILOU", "BMEWO")


@dataclass(frozen=True)
class Labels:
    """The distinct label strings of an input, read.

    Attributes:
        tagset: The complete tag set of their types.
        codes: int16 [n_labels], code of every distinct string; -1 for missing ones, and for bad
            ones unless they count as outside.
        bad: Why a string is not a tag, by its place in the list.
    """

    tagset: Codec
    codes: NDArray[np.int16]
    bad: dict[int, str]


def read_labels(raw: Sequence[str], options: ReadOptions, *, single: bool = False) -> Labels:
    """Read the distinct labels of an input."""
    names = [options.rename(label) for label in raw]
    known = [name for name in names if name is not None]
    wanted = options.encoding or ("PLAIN" if single else guess_encoding(known))
    rules = get_encoding(wanted)
    read = [None if name is None else read_tag(name, rules) for name in names]
    good = [n for n, r in zip(names, read, strict=True) if r and not isinstance(r, TagFault)]
    tagset = Codec.from_tags([name for name in good if name is not None], rules)
    bad = {i: _explain(r, known) for i, r in enumerate(read) if isinstance(r, TagFault)}
    lost = tagset.outside if options.unknown == "outside" else -1
    codes = [tagset.index.get(n, -1) if i not in bad else lost for i, n in enumerate(names)]
    return Labels(tagset, np.array(codes, np.int16), bad)


def guess_encoding(tags: Iterable[str]) -> str:
    """Guess the encoding from the prefixes that occur; BIO stands for IOB too (see `settle`).

    >>> guess_encoding(["O", "B-PER", "L-PER"])
    'BILOU'
    """
    distinct = set(tags)
    letters = {letter for e in ENCODINGS.values() for letter in e.prefixes}
    seen = {tag.partition("-")[0] for tag in distinct if tag.partition("-")[2]} & letters
    if not seen:
        return "BIO" if distinct <= {"O"} else "PLAIN"
    fits = [name for name in _TRIED if seen <= ENCODINGS[name].prefixes.keys()]
    if fits:
        return fits[0]
    shared = {name: len(seen & ENCODINGS[name].prefixes.keys()) for name in _TRIED}
    return max(shared, key=lambda name: shared[name])


def settle(crowd: Crowd, options: ReadOptions) -> Crowd:
    """Decide between BIO and IOB by how spans open, and reject a mixture of encodings.

    The tags of BIO and IOB are the same strings. If most spans of the gold (without gold: of the
    answers) open with I-, the encoding is IOB. Where some columns close their spans with end tags
    and others never do, two encodings are mixed.
    """
    if options.encoding or crowd.tagset.rules.is_plain:
        return crowd
    if crowd.tagset.rules.has_end:
        _reject_mixture(crowd)
        return crowd
    tagged = crowd.gold_tagged if crowd.gold is not None else _answers_tagged(crowd)
    flags = token_flags(tagged, crowd.tagset)
    opened = np.count_nonzero(flags & STARTS)
    by_inside = np.count_nonzero(flags & BAD_OPEN)
    if 2 * by_inside <= opened:
        return crowd
    report = crowd.import_report
    note = f"{by_inside} of {opened} spans open with I-: read as IOB; pass encoding='BIO' if not"
    report = replace(report, notes=(*report.notes, note))
    return replace(crowd, tagset=Codec(crowd.tagset.tags, "IOB"), import_report=report)


def missing_notes(
    raw: Sequence[str], counts: NDArray[np.integer], options: ReadOptions
) -> list[str]:
    """Return how many cells were taken for missing labels, `?` aside.

    Where:
        counts: How often each one stands in the input, [n_labels].
    """
    return [
        f"{count} cells {label!r} mean no label; pass missing=… (--missing) if they are labels"
        for label, count in zip(raw, counts.tolist(), strict=True)
        if count
        and label.strip() != "?"
        and (not label.strip() or label.strip() in options.missing)
    ]


def stripped_faults(strings: Iterable[str], file: str, options: ReadOptions) -> list[Fault]:
    """List labels with white space at their ends, which is not part of a label."""
    if options.strip:
        return []
    return [
        Fault(
            f"label {label!r} has white space at its ends: it is read as {label.strip()!r}",
            file,
            kind="white-space",
        )
        for label in list(strings)
        if label != label.strip() and label.strip()
    ][:MAX_STRIPPED]


def listed_bad_labels(
    bad: dict[int, str], places: Iterable[tuple[int, Fault]], options: ReadOptions
) -> list[Fault]:
    """Return every place of every bad label, for the import report."""
    if bad and (options.unknown == "raise" or options.strict):
        raise FormatError(bad_label_faults(bad, places))
    return bad_label_faults(bad, places, max_each=None)


def bad_label_faults(
    bad: dict[int, str], places: Iterable[tuple[int, Fault]], max_each: int | None = 100
) -> list[Fault]:
    """Put the reason into the place of every bad label, at most `max_each` of a label."""
    listed: dict[int, int] = {}
    faults = []
    for index, place in places:
        listed[index] = listed.get(index, 0) + 1
        if max_each is None or listed[index] <= max_each:
            faults.append(replace(place, message=bad[index], kind="unknown-label"))
    for index, count in listed.items():
        if max_each is not None and count > max_each:
            message = f"{bad[index]} (and {count - max_each} more times)"
            faults.append(Fault(message, kind="unknown-label"))
    return faults


def _explain(fault: TagFault, known: Sequence[str]) -> str:
    """Return what to do about a bad label."""
    mixed = any(
        not isinstance(read_tag(label, e), TagFault)
        for e in ENCODINGS.values()
        for label in known
        if not e.is_plain and fault.message.startswith(f"tag {label!r} ")
    )
    remedy = "two encodings seem to be mixed: convert one of them" if mixed else ""
    rename = "to rename or drop it, pass labels={…} (--label OLD=NEW, or --label OLD= to drop)"
    return "; ".join(part for part in (fault.message, remedy, rename) if part)


def _answers_tagged(crowd: Crowd) -> Tagged:
    return Tagged(crowd.answers.codes, crowd.answers.offset)


def _reject_mixture(crowd: Crowd) -> None:
    closing = np.isin(crowd.tagset.roles, (Role.END, Role.SINGLE))
    spans = crowd.tagset.roles != Role.OUTSIDE
    columns: dict[str, NDArray[np.int16]] = {}
    if crowd.gold is not None:
        columns["gold"] = crowd.gold[crowd.gold >= 0]
    known = crowd.latest.codes >= 0
    codes, workers = crowd.latest.codes[known], crowd.worker_of[known]
    n_closing = np.bincount(workers, closing[codes], crowd.n_workers)
    n_spans = np.bincount(workers, spans[codes], crowd.n_workers)
    open_only = [
        f"worker {crowd.worker_ids[int(w)].as_py()}"
        for w in np.flatnonzero((n_closing == 0) & (n_spans >= 2))
    ]
    gold = columns.get("gold")
    if gold is not None and spans[gold].sum() >= 2 and not closing[gold].any():
        open_only.insert(0, "gold")
    if open_only:
        name, file = crowd.tagset.encoding, crowd.import_report.source
        message = (
            f"two encodings are mixed: others use {name}, but {', '.join(open_only)} never closes "
            f"a span: convert one side first, or pass encoding='{name}' if this is meant"
        )
        raise FormatError([Fault(message, file=file, kind="mixed-encodings")])


def types_of(labels: Iterable[str], rules: Encoding) -> set[str]:
    """Return the span types of some tags; strings that are not tags are passed over."""
    read = (read_tag(label, rules) for label in labels)
    return {pair[1] for pair in read if not isinstance(pair, TagFault) and pair[1]}


def joined(left: Codec, right: Codec) -> Codec:
    """Return the tag set that holds the types of two."""
    if left.encoding != right.encoding:
        raise InputError(
            f"the tags of one side are {left.encoding}, those of the other {right.encoding}: "
            "convert one of them first (goldspan convert), or name the encoding of both"
        )
    return left if left == right else Codec.from_types({*left.types, *right.types}, left.encoding)


# --------------------------------------------------------------------------------------------------
# Known tags, and larger tag sets.


def with_gold_labels(
    crowd: Crowd,
    labels: Sequence[str | None],
    options: ReadOptions,
    name: str,
    lines: Sequence[int] | None = None,
) -> Crowd:
    """Return the crowd known tags from strings, one per token; None where unknown.

    Where:
        labels: [n_tokens].
    """
    distinct = [label for label in dict.fromkeys(labels) if label is not None]
    read = read_labels(
        distinct, replace(options, encoding=options.encoding or crowd.tagset.encoding)
    )
    place: dict[str | None, int] = {label: i for i, label in enumerate(distinct)}
    where = []
    if read.bad:
        ids = crowd.item_ids.to_pylist()
        for token, label in enumerate(labels):
            if place.get(label, -1) in read.bad:
                n = int(np.searchsorted(crowd.offsets, token, side="right")) - 1
                line, at = lines[token] if lines else 0, token - int(crowd.offsets[n])
                at = -1 if crowd.is_classification else at
                where.append((place[label], Fault("", name, line, ids[n], at, "gold")))
    crowd = _with_faults(crowd, listed_bad_labels(read.bad, where, options))
    table = np.append(read.codes, np.int16(-1))
    codes = table[[place.get(label, -1) for label in labels]].astype(np.int16)
    tagset = joined(crowd.tagset, read.tagset)
    return recode(crowd, tagset).with_gold(translate(codes, read.tagset, tagset))


def recode(crowd: Crowd, tagset: Codec) -> Crowd:
    """Return the same crowd with a larger tag set."""
    if tagset == crowd.tagset:
        return crowd
    codes = translate(crowd.answers.codes, crowd.tagset, tagset)
    gold = None if crowd.gold is None else translate(crowd.gold, crowd.tagset, tagset)
    answers = replace(crowd.answers, codes=codes)
    return replace(crowd, tagset=tagset, answers=answers, gold=gold)


def translate(codes: NDArray[np.int16], source: Codec, target: Codec) -> NDArray[np.int16]:
    """Turn codes of one tag set into codes of another that holds its tags."""
    table = np.array([*(target.index[tag] for tag in source.tags), -1], np.int16)
    return np.asarray(table[codes])


def _with_faults(crowd: Crowd, faults: list[Fault]) -> Crowd:
    if not faults:
        return crowd
    report = crowd.import_report
    return replace(crowd, import_report=replace(report, faults=(*report.faults, *faults)))
