"""UIMA CAS as XMI or JSON, as INCEpTION and DKPro Core exchange it. Needs the extra `uima`.

An item is a `Sentence`, its tokens are `Token`s, a span is a `NamedEntity`, else the first type of
`webanno.custom` that has a feature of strings. A document without sentences is one item. Offsets
become code points, whatever `offsets` says.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from goldspan.crowd.formats.char_spans import CharSpan, cut_text
from goldspan.crowd.formats.json_records import Record, collect, one_of
from goldspan.crowd.formats.span_crowd import Item, Labels, SpanCrowd, pieces_within
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.formats.webanno import (
    AnnotatedSentence,
    File,
    listed_files,
    share_ids,
    write_documents,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import FormatError, InputError, MissingExtraError

SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"  # noqa: S105 - no password
ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_ANNOTATION, _STRING = "uima.tcas.Annotation", "uima.cas.String"
_CUSTOM = "webanno.custom."
_TYPES = "TypeSystem.xml"
_STRUCTURE = (
    *("uima.", "de.tudarmstadt.ukp.clarin.webanno.", "org.dkpro.core.api.xml."),
    *("org.dkpro.core.api.pdf.", "de.tudarmstadt.ukp.dkpro.core.api.metadata."),
)
"""Beginnings of types that nobody annotates."""
_UNMAPPED = re.compile(r"Not mapping external offset \[(-?\d+)\]")
_SENTENCE_ID = re.compile(rb"<\w+:Sentence\s(?:[^>]*?\s)?id=\"([^\"]*)\"")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Format(NamedTuple):
    """One of the two ways to write a CAS; what `FORMATS` needs of a module."""

    name: str
    ending: str
    start: bytes  # The first byte that is no white space
    signs: tuple[bytes, ...]  # What stands in every such file

    def sniff(self, source: Source) -> bool:
        files = listed_files(source, self.ending)
        data = files[0].source.data if files else b""
        return _first_byte(data) == self.start and all(sign in data for sign in self.signs)

    def check(self) -> None:
        _cassis()

    def read(self, source: Source, options: ReadOptions) -> Crowd:
        cassis = _cassis()
        crowd = SpanCrowd(replace(source, data=b""), self.name, options, counted=True)
        files = listed_files(source, self.ending)
        types = _types(cassis, source) if self.ending == ".xmi" else None
        is_shared = share_ids(crowd, files, _sentence_ids)
        for file in counted(files, options.progress):
            with collect(crowd.faults):
                _read_file(crowd, cassis, file, types, is_shared=is_shared)
        return crowd.build()

    def layers(self, source: Source, options: ReadOptions) -> list[str]:  # noqa: ARG002
        cassis = _cassis()
        types = _types(cassis, source) if self.ending == ".xmi" else None
        files = listed_files(source, self.ending)
        every = [_labels_of(_load(cassis, file, types)[0]) for file in files]
        return list(dict.fromkeys(chain(*every)))

    def write(self, crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
        cassis = _cassis()
        scored = soft is not None
        types = cassis.TypeSystem()
        sentence = types.create_type(SENTENCE, _ANNOTATION)
        types.create_feature(sentence, "id", _STRING)
        types.create_type(TOKEN, _ANNOTATION)
        entity = types.create_type(ENTITY, _ANNOTATION)
        for name in ("value", "identifier"):
            types.create_feature(entity, name, _STRING)
        if scored:
            types.create_feature(entity, "confidence", "uima.cas.Double")

        def save(place: Path, said: list[AnnotatedSentence]) -> None:
            if self.ending == ".xmi":
                _check_characters(said)
            cas = _build_cas(cassis, types, said)
            if self.ending == ".json":
                cas.to_json(place, pretty_print=False)
                return
            cas.to_xmi(place)
            system = place.parent.parent / _TYPES
            if not system.exists():
                types.to_xml(system)

        write_documents(crowd, path, soft, self.ending, save)


XMI = _Format("xmi", ".xmi", b"<", (b"http:///uima/cas.ecore",))
JSON = _Format("cas-json", ".json", b"{", (b'"%TYPES"', b'"%FEATURE_STRUCTURES"'))


def _first_byte(data: bytes) -> bytes:
    """Return the first byte after a byte order mark and white space."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _sentence_ids(file: File) -> Iterable[str]:
    """List the ids of the sentences of a file, without building its CAS."""
    data = file.source.data
    if _first_byte(data) != b"{":
        return [found.decode("utf-8", "replace") for found in _SENTENCE_ID.findall(data)]
    try:
        listed = json.loads(data)["%FEATURE_STRUCTURES"]
        return [str(one["id"]) for one in listed if one.get("%TYPE") == SENTENCE and "id" in one]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []  # it is told when the file is read


def _types(cassis: Any, source: Source) -> Any:
    found = [source]
    while found:
        one = found.pop()
        for path, file in one.sorted_files():
            if path.rpartition("/")[2] == _TYPES:
                return cassis.load_typesystem(io.BytesIO(file.data))
            if file.is_folder:
                found.append(file)
    return None


def _load(cassis: Any, file: File, types: Any) -> tuple[Any, list[Any]]:
    """Read a CAS; also what was warned of."""
    record = Record({}, file.source.name, 1, worker=file.worker)
    is_json = _first_byte(file.source.data) == b"{"
    if not is_json and types is None:
        message = f"no {_TYPES} beside it: export the folder or the .zip with the type system"
        raise record.error(message, "types")
    data = io.BytesIO(file.source.data)
    try:
        load = cassis.load_cas_from_json if is_json else cassis.load_cas_from_xmi
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            cas = load(data) if is_json else load(data, typesystem=types)
    except Exception as error:  # noqa: BLE001 - whatever the parsers raise
        why = " ".join(str(error).split())[:200]
        message = f"not a CAS that can be read ({type(error).__name__}: {why})"
        raise record.error(message, "cas") from None
    return cas, warned


def _read_file(crowd: SpanCrowd, cassis: Any, file: File, types: Any, *, is_shared: bool) -> None:
    record = Record({}, file.source.name, 1, worker=file.worker)
    cas, warned = _load(cassis, file, types)
    n_units = len((cas.sofa_string or "").encode("utf-16-le", "surrogatepass")) // 2
    unmapped = [int(found[1]) for one in warned if (found := _UNMAPPED.match(str(one.message)))]
    within = sorted({offset for offset in unmapped if 0 <= offset <= n_units})
    if within:
        message = f"offset {within[0]} is within a character: do the offsets count UTF-16 units?"
        raise record.error(message, "out-of-range")
    _read_cas(crowd, cas, file, record, n_units, is_shared=is_shared)


def _read_cas(
    crowd: SpanCrowd, cas: Any, file: File, record: Record, n_units: int, *, is_shared: bool
) -> None:
    text = cas.sofa_string or ""
    kind, feature = _kind(crowd, cas, record)
    sentences, tokens = _select(cas, SENTENCE), _select(cas, TOKEN)
    spans = [] if kind is None else _select(cas, kind)
    _check_offsets(record, [*spans, *sentences, *tokens], len(text), n_units)
    bounds = [(one.begin, one.end) for one in tokens]
    places = [(one.begin, one.end, getattr(one, "id", None)) for one in sentences]
    places = places or [(0, len(text), None)]
    rest, names = spans, set()
    for number, (first, last, name) in enumerate(places, start=1):
        if not text[first:last].strip():
            continue
        here = record.at(item=file.item_id(name, number, is_shared=is_shared))
        inside = [one for one in rest if first <= one.begin and one.end <= last]
        rest = [one for one in rest if one.begin < first or one.end > last]
        with collect(crowd.faults):
            if here.item in names:
                message = "the sentence id appears twice in this file: ids must be unique"
                raise here.error(message, "duplicate-item")
            names.add(here.item)
            own = [(a - first, b - first) for a, b in bounds if first <= a < b <= last]
            item = _item(crowd, here, text[first:last], own, file.document)
            crowd.leave_open(
                here, pieces_within([(one.begin, one.end) for one in rest], first, last)
            )
            labels = [str(getattr(one, feature, None) or "") for one in inside]
            found = [
                CharSpan(label, one.begin - first, one.end - first)
                for label, one in zip(labels, inside, strict=True)
            ]
            crowd.answer_or_gold(item, here, Labels(crowd.place(item, here, found)))
    _list_unread(crowd, cas, record, {one.type.name for one in spans})
    n_sure = sum(bool(getattr(one, "confidence", None)) for one in spans)
    crowd.leave_unread("confidences of spans", record, n_sure)
    ends = [0, *(last for _, last, _ in places)]
    gaps = zip(ends, [*(first for first, _, _ in places), len(text)], strict=True)
    n_gaps = sum(bool(text[a:b].strip()) for a, b in gaps)
    crowd.leave_unread("parts of the text outside every sentence", record, n_gaps)
    for one in rest:
        crosses = any(a < one.end and one.begin < b for a, b, _ in places)
        where = "across sentences" if crosses else "outside every sentence"
        crowd.leave_out(record, f"{_shown(one, feature)} lies {where}: left out", f"span {where}")


def _item(
    crowd: SpanCrowd, record: Record, text: str, bounds: list[tuple[int, int]], group: str | None
) -> Item:
    words = [text[a:b] for a, b in bounds] or None
    starts = [a for a, _ in bounds] or None
    cut = cut_text(record, text, words, starts, rule=crowd.options.tokens)
    return crowd.item(record, cut, group=group)


def _check_offsets(record: Record, listed: Sequence[Any], size: int, n_units: int) -> None:
    """Raise `FormatError` for annotations that are not in the text."""
    faults = []
    for one in listed:
        if one.begin is None or one.end is None:
            faults.append(record.fault(f"{_shown(one)} has no place: give begin and end", "span"))
        elif one.begin < 0 or max(one.begin, one.end) > size:
            message = f"{_shown(one)} is outside the text, which has {n_units} UTF-16 units"
            faults.append(record.fault(message, "out-of-range"))
    if faults:
        raise FormatError(faults)


def _shown(one: Any, feature: str = "value") -> str:
    label = getattr(one, feature, None)
    kind = one.type.name.rpartition(".")[2]
    what = f"span {label[:60]}" if label and isinstance(label, str) else kind
    return f"{what} [{one.begin}, {one.end})"


def _list_unread(crowd: SpanCrowd, cas: Any, record: Record, taken: set[str]) -> None:
    found = Counter(one.type.name for one in cas.select(_ANNOTATION))
    for name, n in found.items():
        if name not in {SENTENCE, TOKEN, *taken} and not name.startswith(_STRUCTURE):
            crowd.leave_unread(f"annotations of the layer {name[-60:]!r}", record, n)


def _kind(crowd: SpanCrowd, cas: Any, record: Record) -> tuple[str | None, str]:
    """Return the type of the spans and its feature with the label."""
    wanted = crowd.options.columns.get("label")
    present = {one.type.name for one in cas.select(_ANNOTATION)}
    if wanted is not None and not cas.typesystem.contains_type(wanted):
        there = ", ".join(sorted(present)[:12])
        raise record.error(f"no annotation of the type {wanted!r}: there are {there}", "layer")
    known = _labels_of(cas, [wanted] if wanted else [])
    if wanted in present and wanted not in known:
        names = ", ".join(one.name for one in cas.typesystem.get_type(wanted).all_features)
        message = f"the type {wanted!r} has no feature of strings, which could be the label"
        raise record.error(f"{message}: it has {names}", "layer")
    if not wanted and len(known) > 1 and (note := one_of(known)) not in crowd.builder.notes:
        crowd.builder.notes.append(note)
    for name, feature in known.items():
        if not wanted:
            crowd.check_layer(name, record)
        return name, feature
    return None, ""


def _labels_of(cas: Any, names: Sequence[str] = ()) -> dict[str, str]:
    """Return the types of spans, or of these the ones there are, with the feature of the label."""
    present = {one.type.name for one in cas.select(_ANNOTATION)}
    custom = sorted(name for name in present if name.startswith(_CUSTOM))
    found = {}
    for name in names or [ENTITY, *custom]:
        if name in present:
            features = cas.typesystem.get_type(name).all_features
            strings = [one.name for one in features if one.rangeType.name == _STRING]
            if strings:
                found[name] = "value" if "value" in strings else strings[0]
    return found


def _select(cas: Any, kind: str) -> list[Any]:
    if not cas.typesystem.contains_type(kind):
        return []
    return list(cas.select(kind))


# --------------------------------------------------------------------------------------------------
# Writing.


def _check_characters(said: Sequence[AnnotatedSentence]) -> None:
    """Raise `InputError` for a character that XML has no place for."""
    for one in said:
        texts = {"id": one.row.id, "text": one.row.text.value}
        texts |= {f"label {span.type!r}": span.type for span in one.spans}
        for what, text in texts.items():
            found = _NOT_XML.search(text)
            if found:
                where = f"item {one.row.id!r}: its {what} has the character U+{ord(found[0]):04X}"
                raise InputError(
                    f"{where}, which XML cannot hold: take it out, or write the format cas-json"
                )


def _build_cas(cassis: Any, types: Any, said: Sequence[AnnotatedSentence]) -> Any:
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string = "\n".join(one.row.text.value for one in said)
    cas.sofa_mime = "text/plain"
    sentence, token, entity = (types.get_type(name) for name in (SENTENCE, TOKEN, ENTITY))
    first = 0
    for one in said:
        text = one.row.text
        cas.add(sentence(begin=first, end=first + len(text.value), id=one.row.id))
        for a, b in text.bounds:
            cas.add(token(begin=first + a, end=first + b))
        for n, span in enumerate(one.spans):
            made = entity(begin=first + span.start, end=first + span.end, value=span.type)
            if one.sure is not None:
                made.confidence = one.sure[n]
            cas.add(made)
        first += len(text.value) + 1
    return cas


def _cassis() -> Any:
    try:
        import cassis
    except ImportError:
        raise MissingExtraError("dkpro-cassis", "uima", "a UIMA CAS") from None
    return cassis
