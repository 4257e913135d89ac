"""From label strings to a tag set: renaming, guessing the encoding, rejecting what is not a tag.

Also which names of labels, workers and items look alike, and which workers are kept.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.grouping import number_attempts
from goldspan.crowd.layers import ask_each
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import QUOTES, ReadOptions
from goldspan.crowd.source import AS_NAMED
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec, Tagged
from goldspan.spans.corpus import token_flags
from goldspan.spans.encoding import (
    BAD_OPEN,
    ENCODINGS,
    STARTS,
    Role,
    TagFault,
    get_encoding,
    read_tag,
)
from goldspan.spans.notebook import counted

MAX_EACH = 100
"""Places of an unknown label that are listed where the input is rejected."""
MAX_STRIPPED = 20
"""Labels with white space at their ends that are listed."""

_TRIED = ("BIO", "IOBES", "BILOU", "BMEWO")


@dataclass(frozen=True)
class Labels:
    """The distinct label strings of an input, read."""

    tagset: Codec  # The complete tag set of their types
    codes: NDArray[np.int16]  # [n_labels], code of every distinct string
    bad: dict[int, str]  # Why a string is not a tag, by its place in the list
    notes: tuple[str, ...] = ()  # How tags are read that are spelled in another way
    # Of a string that is no single label but several choices, or none: the kind of the fault, and
    # why, by its place in the list
    several: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    members: tuple[tuple[str, ...], ...] = ()  # Where tags are sets: the labels of every tag

    @property
    def wrong(self) -> set[int]:
        """Places in the list of strings that are not one tag."""
        return {*self.bad, *self.several}


def read_labels(
    raw: Sequence[str], options: ReadOptions, *, single: bool = False, cells: bool = False,
    choices: Mapping[str, list[str]] | None = None,
) -> Labels:  # fmt: skip
    """Read the distinct labels of an input; `cells` of tables, and `choices`, may hold several."""
    named = choices or {}
    choices = {**(choices_in(raw, options.labels) if cells else {}), **named}
    listed = {i: choices[label] for i, label in enumerate(raw) if label in choices}
    several = {
        i: _several(raw[i], parts, is_cell=raw[i] not in named)
        for i, parts in listed.items()
        if len(parts) != 1
    }
    sets = {tuple(sorted(listed[i])) for i in several if listed[i]}
    is_shown = len(sets) > 1 or len(listed) == len(raw)  # two sets, or lists alone
    is_asked = options.several == "labels" and (single or cells)
    if is_asked or (sets and options.several == "auto" and is_shown):
        return _sets_of_labels([listed.get(i, [label]) for i, label in enumerate(raw)], options)
    names = [options.rename(listed.get(i, [label])[0]) if i not in several else None
             for i, label in enumerate(raw)]  # fmt: skip
    known = [name for name in names if name is not None]
    wanted = options.encoding or ("PLAIN" if single else guess_encoding(known))
    rules = get_encoding(wanted)
    spelling = {} if rules.is_plain else respelled(known)
    names = [options.rename(spelling[name]) if name in spelling else name for name in names]
    read = [None if name is None else read_tag(name, rules) for name in names]
    good = [n for n, r in zip(names, read, strict=True) if r and not isinstance(r, TagFault)]
    tagset = Codec.from_tags([name for name in good if name is not None], rules)
    bad = {i: _explain(r, known) for i, r in enumerate(read) if isinstance(r, TagFault)}
    lost = tagset.outside if options.unknown == "outside" else -1
    codes = [tagset.index.get(n, -1) if i not in bad else lost for i, n in enumerate(names)]
    return Labels(tagset, np.array(codes, np.int16), bad, _spelling_notes(spelling), several)


def _json_list(cell: str) -> list[str] | None:
    """Return the strings of a list in JSON, None of anything else."""
    try:
        found = json.loads(cell) if cell.lstrip()[:1] == "[" else None
    except ValueError:
        return None
    is_list = isinstance(found, list) and all(isinstance(one, str) for one in found)
    return found if is_list else None


def _sets_of_labels(chosen: Sequence[Sequence[str]], options: ReadOptions) -> Labels:
    """Take every set of labels for a tag of its own."""
    place: dict[tuple[str, ...], int] = {}
    codes = []
    for parts in chosen:
        names = [options.rename(part) for part in parts]
        own = tuple(sorted({name for name in names if name is not None}))
        codes.append(place.setdefault(own, len(place)) if own or not parts else -1)
    tagset = Codec(tuple(map(json.dumps, place)), "PLAIN")
    note = "answers choose several labels: each is asked about, so that any number of them holds; "
    note += "several='leave-out' (--several leave-out) reads answers of one label alone"
    return Labels(tagset, np.array(codes, np.int16), {}, (note,), {}, tuple(place))


def choices_in(cells: Sequence[str], kept: Collection[str] = ()) -> dict[str, list[str]]:
    r"""Return the cells that list choices, such as `a|b`, `['a', 'b']` and `a\nb`, with these.

    `a;b` and `a,b` are such where some cell shows it: all its parts are labels alone, or another
    cell has them in another order.

    >>> choices_in(["a|b", "['c']", "a;b", "a, b", "a"])
    {'a|b': ['a', 'b'], "['c']": ['c']}
    """
    found: dict[str, list[str]] = {}
    alone = {cell.strip() for cell in cells}
    for cell in cells:
        if cell.strip() in kept:
            continue
        if (listed := _json_list(cell)) is not None:
            found[cell] = listed
            continue
        written = _WRITTEN_LIST.fullmatch(cell)
        if written:
            found[cell] = ["".join(one) for one in _ELEMENT.findall(written[1])]
            continue
        for sign, part in (("\n", ".+"), ("|", ".+"), ("#", r"[^\W\d][\w -]*")):
            parts = [one.strip() for one in cell.strip().split(sign)]
            if len(parts) > 1 and all(re.fullmatch(part, one, re.DOTALL) for one in parts):
                found.setdefault(cell, parts)
    for sign in ",;":
        split = {cell: [one.strip() for one in cell.split(sign)] for cell in cells if sign in cell}
        split = {cell: parts for cell, parts in split.items() if all(parts) and cell not in found}
        orders = Counter(tuple(sorted(parts)) for parts in {tuple(one) for one in split.values()})
        if any(alone >= {*one} or orders[tuple(sorted(one))] > 1 for one in split.values()):
            found |= {cell: parts for cell, parts in split.items() if cell.strip() not in kept}
    return found


def _several(cell: str, parts: Sequence[str], *, is_cell: bool) -> tuple[str, str]:
    one, option = cell.strip(), shlex.quote(f"{cell.strip()}={cell.strip()}")
    what = f"{len(parts)} choices in {one!r}, but a single label is needed: left out"
    if not parts:
        return "no choice", what
    keep = f"if it is one label, pass labels={{{one!r}: {one!r}}} (--label {option})"
    every = "for any number of labels, several='labels' (--several labels)"
    return "several choices", f"{what}; {keep}; {every}" if is_cell else f"{what}; {every}"


def guess_encoding(tags: Iterable[str]) -> str:
    """Guess the encoding from the prefixes that occur; BIO stands for IOB too (see `settle`)."""
    distinct = set(tags)
    spelling = respelled(distinct)
    distinct = {spelling.get(tag, tag) for tag in distinct}
    letters = {letter for e in ENCODINGS.values() for letter in e.prefixes}
    seen = {tag.partition("-")[0] for tag in distinct if tag.partition("-")[2]} & letters
    if not seen:
        return "BIO" if distinct <= {"O"} else "PLAIN"
    return max(_TRIED, key=lambda name: len(seen & ENCODINGS[name].prefixes.keys()))


def respelled(tags: Collection[str]) -> dict[str, str]:
    """Return tags such as `PER-B`, `b_per` or a bare `B` as goldspan writes them, if all are such.

    >>> respelled({"PER-B", "PER-I", "O"}) == {"PER-B": "B-PER", "PER-I": "I-PER"}
    True
    """
    outside = {"O", "o"} & set(tags)
    others = set(tags) - outside
    letters = {letter for encoding in ENCODINGS.values() for letter in encoding.prefixes}
    if not outside or any(one[:1] in letters and one[1:2] == "-" for one in others):
        return {}
    for spelling in _SPELLINGS:
        found = {tag: match for tag in others if (match := spelling.fullmatch(tag))}
        letters = {match["letter"] for match in found.values()}
        capital = {letter.upper() for letter in letters}
        is_one = letters in (capital, {letter.lower() for letter in letters})
        known = any(capital <= e.prefixes.keys() for e in ENCODINGS.values() if not e.is_plain)
        if found and len(found) == len(others) and is_one and known and capital & {"B", "I"}:
            new = {
                tag: f"{match['letter'].upper()}-{match.groupdict().get('kind', ONE_TYPE)}"
                for tag, match in found.items()
            }
            return {
                old: tag for old, tag in {**new, "o": "O"}.items() if old != tag and old in tags
            }
    return {}


def _spelling_notes(spelling: Mapping[str, str]) -> tuple[str, ...]:
    shown = [f"{old!r} as {new}" for old, new in sorted(spelling.items()) if new != "O"][:2]
    plain = "if they are labels of single tokens, pass encoding='PLAIN' (--from PLAIN)"
    return (f"tags of spans in another spelling: {', '.join(shown)}; {plain}",) if shown else ()


def settle(crowd: Crowd, options: ReadOptions, members: Sequence[Sequence[str]] = ()) -> Crowd:
    """Decide between BIO and IOB by how spans open, and reject a mixture of encodings."""
    # The tags of BIO and IOB are the same strings; those with `members` are sets of labels
    if members:
        return ask_each(crowd, members)
    if options.encoding:
        return crowd
    if crowd.tagset.rules.is_plain:
        return with_notes(crowd, _disguised(crowd))
    if crowd.tagset.rules.has_end:
        _reject_mixture(crowd)
        return crowd
    of_answers = token_flags(Tagged(crowd.answers.codes, crowd.answers.offset), crowd.tagset)
    flags = of_answers if crowd.gold is None else token_flags(crowd.gold_tagged, crowd.tagset)
    opened = np.count_nonzero(flags & STARTS)
    by_inside = np.count_nonzero(flags & BAD_OPEN)
    if 2 * by_inside <= opened:
        return with_notes(crowd, _other_openings(crowd, of_answers))
    note = f"{by_inside} of {opened} spans open with I-: read as IOB; pass encoding='BIO' if not"
    crowd = with_notes(crowd, [note])
    return replace(crowd, tagset=Codec(crowd.tagset.tags, "IOB"))


def with_notes(crowd: Crowd, notes: Sequence[str], faults: Sequence[Fault] = ()) -> Crowd:
    """Return the crowd with more notes and faults in its import report."""
    report = crowd.import_report
    more = replace(report, notes=(*report.notes, *notes), faults=(*report.faults, *faults))
    return replace(crowd, import_report=more)


def _disguised(crowd: Crowd) -> list[str]:
    """Say that labels of tokens look like tags of spans that are written in another way."""
    tags = [tag for tag in crowd.tagset.tags if tag not in {"O", "o"}]
    if "-1" in tags and len(tags) > 1 and all(tag == "-1" or tag.isdecimal() for tag in tags):
        note = "'-1' is read as a label; if it means none, as in Snorkel's matrices, pass "
        return [f"{note}missing=['-1'] (--missing=-1)"]
    if crowd.is_classification or not tags or len(tags) == len(crowd.tagset.tags):
        return []
    alike = [tag for tag in tags if _TAG_LIKE.fullmatch(tag)]
    first = (alike or tags)[0]
    one = f"labels such as {first!r} beside 'O' are read as labels of single tokens: "
    if not alike:
        one += f"if neighbours of one label make a span, pass labels={{{first!r}: 'I-{first}', …}} "
        return [f"{one}(--label {first}=I-{first} …)"]
    one += "they look like tags of spans, which BIO writes B-PER, I-PER and O; pass "
    return [f"{one}encoding='BIO' (--from BIO) to be told which labels to rename"]


def _other_openings(crowd: Crowd, flags: NDArray[np.uint8]) -> list[str]:
    """Name workers who open nine of ten spans with I-, as IOB does, where others write BIO."""
    # flags [n_labels], of the answers
    lengths = np.diff(crowd.answers.offset)
    worker = np.repeat(crowd.answers.worker, lengths)
    opened = np.bincount(worker[(flags & STARTS) > 0], minlength=crowd.n_workers)
    inside = np.bincount(worker[(flags & BAD_OPEN) > 0], minlength=crowd.n_workers)
    found = np.flatnonzero((10 * inside >= 9 * opened) & (opened >= _LEAST_OPENED))
    if not len(found):
        return []
    names = ", ".join(
        f"{crowd.worker_ids[int(w)].as_py()} {inside[w]} of {opened[w]}" for w in found[:3].tolist()
    )
    more = f" and {len(found) - 3} more workers" if len(found) > 3 else ""
    note = (
        f"spans that open with I-, where others write B-: {names}{more}. If these workers write "
        "IOB, convert what they gave to BIO before (goldspan convert --from IOB --to BIO)"
    )
    return [note]


_STRING = r"""'([^']*)'|"([^"]*)"|([+-]?\d+)"""
_ELEMENT = re.compile(_STRING)
_WRITTEN_LIST = re.compile(rf"\s*\[((?:[\s,]*(?:{_STRING}))*)[\s,]*\]\s*")
_TAG_LIKE = re.compile(r"[BIbi]([-_].+)?|.+[-_][BI]")
_SPELLINGS = [
    re.compile(spelling)
    for letter in ["(?P<letter>[BIESLUMWbieslumw])"]
    for spelling in (letter, f"{letter}[-_](?P<kind>.+)", f"(?P<kind>.+)[-_]{letter}")
]
ONE_TYPE = "SPAN"
"""The type of spans whose tags name none."""
_LEAST_OPENED = 5
"""Spans of a worker whose openings say how the worker writes."""


def missing_notes(
    raw: Sequence[str], counts: NDArray[np.integer], options: ReadOptions
) -> list[str]:
    """Return how many cells were taken for missing labels, `?` aside."""
    return [
        f"{counted(count, 'cell')} {label!r} mean{'s' if count == 1 else ''} no label; "
        "pass missing=… (--missing) if that is a label"
        for label, count in zip(raw, counts.tolist(), strict=True)
        if count and label.strip() in {"", *options.missing} - {"?"}
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


def label_faults(
    labels: Labels, places: Iterable[tuple[int, Fault]], options: ReadOptions
) -> tuple[list[Fault], list[Fault]]:
    """Put into places why their labels are not tags, and which cells hold several choices.

    Labels for which the input is rejected are listed `MAX_EACH` times each.
    """
    counts: Counter[int] = Counter()
    unknown: list[Fault] = []
    several: list[Fault] = []
    for index, place in places:
        if index in labels.several:
            kind, message = labels.several[index]
            several.append(replace(place, message=message, kind=kind))
            continue
        counts[index] += 1
        if counts[index] <= MAX_EACH or not options.rejects_unknown:
            unknown.append(replace(place, message=labels.bad[index], kind="unknown-label"))
    for index, count in counts.items():
        if count > MAX_EACH and options.rejects_unknown:
            message = f"{labels.bad[index]} (and {count - MAX_EACH} more times)"
            unknown.append(Fault(message, kind="unknown-label"))
    return unknown, several


def reject_unknown(faults: Sequence[Fault], options: ReadOptions) -> None:
    """Raise the faults of unknown labels, unless they are only to be listed."""
    if faults and options.rejects_unknown:
        raise FormatError(faults)


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


def _reject_mixture(crowd: Crowd) -> None:
    closing = np.isin(crowd.tagset.roles, (Role.END, Role.SINGLE))
    spans = crowd.tagset.roles != Role.OUTSIDE
    gold = None if crowd.gold is None else crowd.gold[crowd.gold >= 0]
    known = crowd.latest.codes >= 0
    codes, workers = crowd.latest.codes[known], crowd.worker_of[known]
    n_closing = np.bincount(workers, closing[codes], crowd.n_workers)
    n_spans = np.bincount(workers, spans[codes], crowd.n_workers)
    open_only = [
        f"worker {crowd.worker_ids[int(w)].as_py()}"
        for w in np.flatnonzero((n_closing == 0) & (n_spans >= 2))
    ]
    if gold is not None and spans[gold].sum() >= 2 and not closing[gold].any():
        open_only.insert(0, "gold")
    if open_only:
        name, file = crowd.tagset.encoding, crowd.import_report.source
        message = (
            f"two encodings are mixed: others use {name}, but {', '.join(open_only)} never closes "
            f"a span: convert one side first, or pass encoding='{name}' if this is meant"
        )
        raise FormatError([Fault(message, file=file, kind="mixed-encodings")])


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
    labels: Sequence[str | None],  # [n_tokens]
    options: ReadOptions,
    name: str,
    lines: Sequence[int] | None = None,
) -> Crowd:
    """Return the crowd with known tags from strings, one per token; None where unknown."""
    distinct = [label for label in dict.fromkeys(labels) if label is not None]
    several = "leave-out" if len(crowd.answers) else options.several  # sets beside single answers
    encoding = options.encoding or crowd.tagset.encoding
    read = read_labels(
        distinct,
        replace(options, encoding=encoding, several=several),
        cells=crowd.is_classification,
    )
    place: dict[str | None, int] = {label: i for i, label in enumerate(distinct)}

    def places() -> Iterator[tuple[int, Fault]]:
        wrong = read.wrong
        ids = crowd.item_ids.to_pylist() if wrong else []
        for token, label in enumerate(labels if wrong else ()):
            if (index := place.get(label, -1)) in wrong:
                n = int(np.searchsorted(crowd.offsets, token, side="right")) - 1
                line, at = lines[token] if lines else 0, token - int(crowd.offsets[n])
                at = -1 if crowd.is_classification else at
                yield index, Fault("", name, line, ids[n], at, "gold")

    unknown, left_out = label_faults(read, places(), options)
    reject_unknown(unknown, options)
    notes = [note for note in read.notes if note not in crowd.import_report.notes]
    table = np.append(read.codes, np.int16(-1))
    codes = table[[place.get(label, -1) for label in labels]].astype(np.int16)
    if read.members:
        found = ask_each(replace(crowd, tagset=read.tagset, gold=codes), read.members)
        return with_notes(found, notes)
    tagset = joined(crowd.tagset, read.tagset)
    found = recode(crowd, tagset).with_gold(translate(codes, read.tagset, tagset))
    return with_notes(found, notes, [*left_out, *unknown])


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


# --------------------------------------------------------------------------------------------------
# Names that may mean the same: labels and workers that differ by case, white space or quotes.


KIND = "similar-names"
MAX_GROUPS = 20
"""Groups that are listed of each sort."""

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_ODD_ITEM = r"^[\s'\"=]|\s$|^[+-]?\d+\.0+$"


def check_names(crowd: Crowd, options: ReadOptions) -> Crowd:
    """Rename workers as the options say, and list names that look alike in the import report."""
    crowd = _with_workers(crowd, options)
    labels = crowd.tagset.tags if crowd.tagset.rules.is_plain else crowd.tagset.types
    faults = [
        *_groups("label", labels, "labels={{{0!r}: {1!r}}} (--label {0}={1})", crowd),
        *_groups(
            "worker",
            crowd.worker_ids.to_pylist(),
            "rename_workers={{{0!r}: {1!r}}} (--rename-worker {0}={1})",
            crowd,
        ),
        *_item_groups(crowd),
    ]
    if faults and options.strict:
        raise FormatError(faults)
    return with_notes(crowd, [], faults)


def plain_name(name: str) -> str:
    """Return what names that mean the same have in common."""
    name = ReadOptions.stripped(name)
    whole = _WHOLE.fullmatch(name)
    return " ".join((whole[1] if whole else name).casefold().split())


def _groups(what: str, names: Sequence[str], remedy: str, crowd: Crowd) -> Iterable[Fault]:
    """Faults for names of which several mean the same, and for names in quotes."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(plain_name(name), []).append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    file = crowd.import_report.source
    for group in alike[:MAX_GROUPS]:
        best = min(group, key=lambda name: (name != ReadOptions.stripped(name), group.index(name)))
        others = [name for name in group if name != best]
        hint = remedy.format(others[0], best)
        strip = ""
        if any(ReadOptions.stripped(name) == ReadOptions.stripped(best) for name in others):
            strip = ", or strip=True (--strip) where only white space and quotes differ"
        message = (
            f"{what}s {', '.join(map(repr, group))} differ only in case, white space, quotes or "
            f"the way a number is written: if they mean the same, pass {hint}{strip}"
        )
        yield Fault(message, file, kind=KIND)
    if len(alike) > MAX_GROUPS:
        message = f"and {len(alike) - MAX_GROUPS} more groups of {what}s that look alike"
        yield Fault(message, file, kind=KIND)
    grouped = {name for group in alike for name in group}
    quoted = [
        name
        for name in names
        if name not in grouped
        and name != ReadOptions.stripped(name)
        and name.strip().startswith((*QUOTES, '="'))
    ]
    if quoted:
        message = (
            f"{what}s such as {quoted[0]!r} are in quotation marks, as spreadsheets write them "
            f"({len(quoted)} of them): pass strip=True (--strip) to take them off"
        )
        yield Fault(message, file, kind="quoted-names")


def _item_groups(crowd: Crowd) -> Iterable[Fault]:
    """Faults for ids of items such as `1` and `1.0`, or with white space at their ends."""
    ids = crowd.item_ids
    odd = ids.filter(pc.match_substring_regex(ids, _ODD_ITEM)).to_pylist()
    if not odd:
        return
    there = set(ids.to_pylist())
    pairs = []
    for name in odd:
        stripped = ReadOptions.stripped(name)
        whole = _WHOLE.fullmatch(stripped)
        other = whole[1] if whole else stripped
        if other != name and other in there:
            pairs.append((other, name))
    if pairs:
        message = (
            f"items such as {pairs[0][0]!r} and {pairs[0][1]!r} differ only in white space, quotes "
            f"or the way a number is written ({len(pairs)} of them): they stay two items; write "
            "their ids alike in the file if they are one"
        )
        yield Fault(message, crowd.import_report.source, kind=KIND)


def _with_workers(crowd: Crowd, options: ReadOptions) -> Crowd:
    """Rename workers as the options say; what becomes one worker has repeated answers."""
    names = crowd.worker_ids.to_pylist()
    absent = [name for name in options.rename_workers if name not in names]
    if absent:
        there = ", ".join(map(repr, names[:20]))
        raise InputError(f"there is no worker {absent[0]!r} to rename: the workers are {there}")
    short = {name: options.stripped(name) if options.strip else name for name in names}
    given = options.rename_workers
    new = {name: given.get(name, given.get(short[name], short[name])) for name in names}
    if all(name == old for old, name in new.items()):
        return crowd
    if not all(new.values()):
        raise InputError("the new id of a worker is empty: write one")
    kept = list(dict.fromkeys(new.values()))
    place = {name: n for n, name in enumerate(kept)}
    table = np.array([place[name] for name in new.values()], np.int32)
    answers = crowd.answers
    worker = table[answers.worker] if len(answers) else answers.worker
    if len(kept) == len(names):
        answers = replace(answers, worker=worker)
    else:
        # In the order in which each one gave them: their attempts stay in order.
        order = np.argsort(answers.attempt, kind="stable")
        attempt = np.empty(len(answers), np.int16)
        attempt[order] = number_attempts(answers.item[order], worker[order], options.repeated)
        answers = replace(answers, worker=worker, attempt=attempt)
    note = f"{len(names)} workers are {len(kept)} after renaming"
    return replace(
        with_notes(crowd, [note] if len(kept) < len(names) else []),
        worker_ids=pa.array(kept, pa.string()),
        answers=answers,
        worker_facts={new[name]: facts for name, facts in crowd.known_facts.items()},
    )


# --------------------------------------------------------------------------------------------------
# Keeping the workers whom the user named.


def keep_workers(crowd: Crowd, options: ReadOptions) -> Crowd:
    """Leave out the answers of workers whom `options.workers` does not name; all items stay."""
    if options.workers is None:
        return crowd
    names = crowd.worker_ids.to_pylist()
    report = crowd.import_report
    check_workers(options.workers, names, report.source)
    kept = [n for n, name in enumerate(names) if name in options.workers]
    chosen = crowd.select_workers(np.array(kept, np.intp))
    gone = int((crowd.answers.codes >= 0).sum() - (chosen.answers.codes >= 0).sum())
    report = replace(report, n_labels=report.n_labels - gone, n_placed=report.n_placed - gone)
    left = len(names) - len(kept)
    return with_notes(replace(chosen, import_report=report), [f"{left} {AS_NAMED}"] if left else [])


def check_workers(wanted: Collection[str], there: Collection[str], file: str) -> None:
    """Reject names that no worker has."""
    shown = ", ".join(list(there)[:20])
    faults = [
        Fault(f"there is no worker {name!r}: the workers are {shown}", file=file, kind="worker")
        for name in wanted
        if name not in there
    ]
    if faults:
        raise FormatError(faults)
