"""A crowd in another encoding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.model import Crowd
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.spans import (
    Codec,
    Tagged,
    find_errors,
    find_spans,
)
from goldspan.spans.corpus import write_codes
from goldspan.spans.encoding import get_encoding


def convert_crowd(crowd: Crowd, encoding: str, policy: str = "raise") -> Crowd:
    r"""Rewrite the gold and every answer in another encoding.

    Args:
        crowd: The crowd.
        encoding: The target encoding.
        policy: What to do with malformed tags: "raise" rejects them all; "conlleval", "strict"
            and "boundaries" read them that way and write what was read.

    Raises:
        FaultsError: Malformed tags with policy "raise"; every one is listed.
        InputError: One of the two encodings is PLAIN.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\tann\nAnn\tB-PER\n")
    >>> convert_crowd(crowd, "IOBES").answers_of("1")
    {'ann': ['S-PER']}
    """
    target = Codec.from_types(crowd.tagset.types, get_encoding(encoding))
    if target.rules.is_plain != crowd.tagset.rules.is_plain:
        raise InputError("PLAIN labels hold no spans: they cannot be converted to another encoding")
    if policy == "raise":
        faults = encoding_faults(crowd)
        if faults:
            raise FaultsError(
                faults,
                f"{len(faults)} tags break the rules of {crowd.tagset.encoding}: fix them, or "
                "read them by a policy, such as policy='conlleval' (--repair conlleval)",
            )
        policy = "conlleval"
    answers = crowd.answers
    codes = _rewrite(Tagged(answers.codes, answers.offset), crowd.tagset, target, policy)
    gold = None
    if crowd.gold is not None:
        gold = _rewrite(crowd.gold_tagged, crowd.tagset, target, policy)
    return replace(crowd, tagset=target, answers=replace(answers, codes=codes), gold=gold)


def encoding_faults(crowd: Crowd) -> list[Fault]:
    """List every tag of the gold and of the answers that breaks the rules of the encoding."""
    faults: list[Fault] = []
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    file = crowd.import_report.source
    if crowd.gold is not None:
        found = find_errors(crowd.gold_tagged, crowd.tagset)
        for fault in found.describe(crowd.gold_tagged, crowd.tagset):
            item = ids[int(fault.item)]
            faults.append(replace(fault, file=file, item=item, worker="gold"))
    tagged = Tagged(crowd.answers.codes, crowd.answers.offset)
    for fault in find_errors(tagged, crowd.tagset).describe(tagged, crowd.tagset):
        answer = int(fault.item)
        item, who = ids[crowd.answers.item[answer]], workers[crowd.answers.worker[answer]]
        faults.append(replace(fault, file=file, item=item, worker=who))
    return faults


def all_faults(crowd: Crowd) -> list[Fault]:
    """List the tags that are not in the encoding, and those that break its rules, in one."""
    unknown = [f for f in crowd.import_report.faults if f.kind == "unknown-label"]
    items = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    columns = {name: n for n, name in enumerate(crowd.worker_ids.to_pylist())}

    def place(fault: Fault) -> tuple[int, int, int]:
        return items.get(fault.item, len(items)), fault.token, columns.get(fault.worker, -1)

    return sorted([*unknown, *encoding_faults(crowd)], key=place)


def _rewrite(tagged: Tagged, source: Codec, target: Codec, policy: str) -> NDArray[np.int16]:
    spans = find_spans(tagged, source, policy)
    codes = write_codes(spans, tagged.offsets, target)
    return np.where(tagged.codes < 0, np.int16(-1), codes)
