"""Names: of columns, of workers, and names that look alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldspan.crowd.grouping import number_attempts
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import QUOTES, ReadOptions
from goldspan.errors import Fault, FormatError, InputError

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
    if not faults:
        return crowd
    if options.strict:
        raise FormatError(faults)
    report = crowd.import_report
    return replace(crowd, import_report=replace(report, faults=(*report.faults, *faults)))


def plain_name(name: str) -> str:
    """Return what names that mean the same have in common.

    >>> plain_name(" “Yes” ") == plain_name("yes"), plain_name("1.0")
    (True, '1')
    """
    name = ReadOptions().stripped(name)
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
        best = min(
            group, key=lambda name: (name != ReadOptions().stripped(name), group.index(name))
        )
        others = [name for name in group if name != best]
        hint = remedy.format(others[0], best)
        strip = ""
        if any(ReadOptions().stripped(name) == ReadOptions().stripped(best) for name in others):
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
        if name not in grouped and name != ReadOptions().stripped(name) and _is_quoted(name)
    ]
    if quoted:
        message = (
            f"{what}s such as {quoted[0]!r} stand in quotation marks, as spreadsheets write them "
            f"({len(quoted)} of them): pass strip=True (--strip) to take them off"
        )
        yield Fault(message, file, kind="quoted-names")


def _is_quoted(name: str) -> bool:
    bare = name.strip()
    return bare[:1] in QUOTES or bare[:2] == '="'


def _item_groups(crowd: Crowd) -> Iterable[Fault]:
    """Faults for ids of items such as `1` and `1.0`, or with white space at their ends."""
    ids = crowd.item_ids
    odd = ids.filter(pc.match_substring_regex(ids, _ODD_ITEM)).to_pylist()
    if not odd:
        return
    there = set(ids.to_pylist())
    pairs = []
    for name in odd:
        stripped = ReadOptions().stripped(name)
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
    """Return workers other ids; what becomes one worker has repeated answers."""
    names = crowd.worker_ids.to_pylist()
    absent = [name for name in options.rename_workers if name not in names]
    if absent:
        there = ", ".join(map(repr, names[:20]))
        raise InputError(f"there is no worker {absent[0]!r} to rename: the workers are {there}")
    new = [options.stripped(name) if options.strip else name for name in names]
    new = [
        options.rename_workers.get(name, options.rename_workers.get(short, short))
        for name, short in zip(names, new, strict=True)
    ]
    if new == names:
        return crowd
    return merge_workers(crowd, dict(zip(names, new, strict=True)), options)


def merge_workers(crowd: Crowd, new: Mapping[str, str], options: ReadOptions) -> Crowd:
    """Return workers other ids, several of which may be the same."""
    names = crowd.worker_ids.to_pylist()
    kept = list(dict.fromkeys(new[name] for name in names))
    if not all(kept):
        raise InputError("the new id of a worker is empty: write one")
    place = {name: n for n, name in enumerate(kept)}
    table = np.array([place[new[name]] for name in names], np.int32)
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
    report = crowd.import_report
    note = f"{len(names)} workers are {len(kept)} after renaming"
    notes = (*report.notes, note) if len(kept) < len(names) else report.notes
    return replace(
        crowd,
        worker_ids=pa.array(kept, pa.string()),
        answers=answers,
        import_report=replace(report, notes=notes),
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
    notes = report.notes
    if len(kept) < len(names):
        left = len(names) - len(kept)
        notes = (*notes, f"{left} workers left out, because others were named")
    report = replace(
        report, n_labels=report.n_labels - gone, n_placed=report.n_placed - gone, notes=notes
    )
    return replace(chosen, import_report=report)


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
