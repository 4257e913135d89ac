"""Families of workers who err together: found from the answers or given, and what they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._lazy import lazy
from goldspan.aggregation.families.counting import SAID
from goldspan.aggregation.families.counting import Families as Families
from goldspan.aggregation.families.finding import (
    LEAST_RHO,
    Labels,
    beyond_matrices,
    pair_agreements,
)
from goldspan.aggregation.families.finding import find_families as find_families
from goldspan.crowd import Crowd
from goldspan.crowd.grid import csv_rows
from goldspan.crowd.source import open_source
from goldspan.errors import Fault, FormatError, InputError

__getattr__, __dir__, __all__ = lazy(
    __name__,
    also=(
        *("as_copies", "check_families", "check_known", "families_for", "families_named_by"),
        *("given_families", "names_nobody", "read_families", "named_families"),
    ),
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CAUTION = 4.0
"""Weight of the first guess of rho (1 of given families): a pair with a standard error of 1/2."""


def families_for(
    families: Any, crowd: Crowd, known: NDArray[np.int16] | None = None
) -> Families | None:
    """Find or take the families of a crowd; None where everybody errs alone."""
    if families == "auto":
        found: Families | None = _measured(find_families(crowd), crowd, known)
        if told := named_families(crowd):
            found = _beside(given_families(crowd, told, known), found, told)
    elif families == "none":
        found = None
    elif isinstance(families, Families):
        found = families.on(crowd.worker_ids)
    else:
        given = families if isinstance(families, Mapping) else read_families(families)
        check_known(given, crowd.worker_ids)
        found = given_families(crowd, given, known)
    return found or None


def given_families(
    crowd: Crowd, families: Mapping[str, str], known: NDArray[np.int16] | None = None
) -> Families:
    """Take families that are known, and estimate how much their members err together."""
    # known int16 [n_tokens]
    number, given = _numbered_names(families, crowd.worker_ids)
    sizes = np.bincount(number)
    size = len(sizes)
    rho, assumed = np.zeros(size), sizes > 1
    if assumed.any():
        own, found, error = _within(crowd, number)
        if known is not None and (known >= 0).any():
            judged = _within(crowd, number, known)
            rest = ~np.isin(own, judged[0])
            both = zip(judged, (own, found, error), strict=True)
            own, found, error = (np.concatenate([one, other[rest]]) for one, other in both)
        assumed &= np.bincount(own, minlength=size) == 0
        rho = np.where(sizes > 1, _shrunk(np.ones(size), own, found, error), 0.0)
    unknown = frozenset(np.flatnonzero(assumed).tolist())
    return Families(number, rho, crowd.worker_ids, given, unknown)


def named_families(crowd: Crowd) -> dict[str, str]:
    """Return the families of two workers or more that the crowd's own facts tell, by worker id.

    Files that `goldspan label` writes hold such facts (`Crowd.worker_facts`).

    >>> from dataclasses import replace
    >>> import goldspan
    >>> crowd = goldspan.read_crowd([{"item": 1, "worker": w, "label": "x"} for w in "abc"])
    >>> facts = {"a": {"family": "gpt"}, "b": {"family": "gpt"}, "c": {"family": "other"}}
    >>> named_families(replace(crowd, worker_facts=facts))
    {'a': 'gpt', 'b': 'gpt'}
    """
    return families_named_by(crowd.known_facts)


def families_named_by(facts_of: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the families of two workers or more that facts tell, by worker id."""
    names = {worker: facts.get("family", "").strip() for worker, facts in facts_of.items()}
    size = Counter(names.values())
    return {worker: name for worker, name in names.items() if name and size[name] > 1}


def _beside(given: Families, found: Families | None, told: Mapping[str, str]) -> Families:
    """Return families that were given, and found ones of the workers who are in none of them."""
    if found is None:
        return given
    own = np.array([worker in told for worker in given.worker_ids.to_pylist()], np.bool_)
    number = np.where(own, given.number, len(given.rho) + found.number)
    both = replace(given, number=number, rho=np.concatenate([given.rho, found.rho]))
    return both.renumbered(number, given.worker_ids)


def as_copies(families: Mapping[str, str], worker_ids: pa.Array) -> Families:
    """Take families whose members are as one: rho is 1 where there are no answers to tell it by."""
    check_families(families)
    check_known(families, worker_ids)
    number, given = _numbered_names(families, worker_ids)
    assumed = np.bincount(number) > 1
    unknown = frozenset(np.flatnonzero(assumed).tolist())
    return Families(number, assumed.astype(np.float64), worker_ids, given, unknown)


def check_known(families: Mapping[str, str], worker_ids: pa.Array) -> None:
    """Reject families of workers who are not there."""
    there = set(worker_ids.to_pylist())
    unknown = [str(worker) for worker in families if str(worker) not in there]
    if unknown:
        more = f" and {len(unknown) - SAID} more" if len(unknown) > SAID else ""
        raise InputError(
            f"families: no worker {', '.join(map(repr, unknown[:SAID]))}{more} among the "
            f"{len(there)} workers"
        )


def _numbered_names(
    families: Mapping[str, str], worker_ids: pa.Array
) -> tuple[Ints, dict[int, str]]:
    """Number families in the order of the first members; and return their names."""
    names = {str(worker): str(family).strip() for worker, family in families.items()}
    first: dict[tuple[bool, str], int] = {}
    keys = [(w in names, names.get(w, w)) for w in worker_ids.to_pylist()]
    number = np.array([first.setdefault(key, len(first)) for key in keys], np.int64)
    return number, {n: name for (is_named, name), n in first.items() if is_named}


# --------------------------------------------------------------------------------------------------
# How much members err together, by known truth where there is enough of it, else by the answers.


def _within(
    crowd: Crowd, number: Ints, known: NDArray[np.int16] | None = None
) -> tuple[Ints, Floats, Floats]:
    """Return the family, rho and its standard error of all pairs within families."""
    # Of known truth: where there is any
    labels, size = Labels.of(crowd, known), int(number.max(initial=-1)) + 1
    pairs, common = pair_agreements(crowd, labels)
    excess = beyond_matrices(
        labels, pairs, common, Families(number, np.ones(size), crowd.worker_ids)
    )
    inside = (number[pairs.left] == number[pairs.right]) & (
        known is not None or np.isfinite(excess.z)
    )
    return number[pairs.left][inside], excess.rho[inside], excess.error[inside]


def _shrunk(prior: Floats, own: Ints, rho: Floats, error: Floats) -> Floats:
    """Return rho of every family: the mean of its pairs' and of a prior that weighs `CAUTION`."""
    size, weight = len(prior), 1 / (error**2 + 1e-4)
    total = CAUTION * prior + np.bincount(own, weight * rho, size)
    return np.asarray(np.clip(total / (CAUTION + np.bincount(own, weight, size)), 0, 1))


def _measured(found: Families, crowd: Crowd, known: NDArray[np.int16] | None) -> Families:
    """Measure found families by known truth, as far as there is enough; rho of 0 is no family."""
    if not found or known is None or not (known >= 0).any():
        return found
    own, rho, error = _within(crowd, found.number, known)
    new = _shrunk(found.rho, own, rho, error)
    is_none = new < LEAST_RHO
    measured = replace(found, rho=np.where(found.sizes > 1, new, 0.0))
    number = np.where(is_none[found.number], -1, found.number)
    return measured.renumbered(number, crowd.worker_ids)


# --------------------------------------------------------------------------------------------------
# What a user may hand over.


def check_families(families: Any) -> None:
    """Reject what is neither "auto", "none", a file, a mapping, nor `Families`."""
    if isinstance(families, Mapping):
        bad = [one for one, name in families.items() if not (_is_name(one) and _is_name(name))]
        if bad:
            raise InputError(
                "families must give names to workers: text that is not empty, but "
                + ", ".join(f"{one!r} has {families[one]!r}" for one in bad[:SAID])
            )
    elif not isinstance(families, str | Path | Families) or not str(families):
        raise InputError(
            'families must be "auto", "none", a file with columns worker and family, or a mapping '
            f"from worker ids to names of families, not {families!r}"
        )


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and bool(str(value).strip())


def read_families(path: str | Path) -> dict[str, str]:
    """Read the families of workers from a CSV file with columns worker and family."""
    # Workers whose family is empty err alone, as do those who are not in the file
    if Path(path).is_dir() or not Path(path).exists():
        message = 'there is no such file; families are "auto", "none", or a file'
        raise FormatError([Fault(message, str(path))])
    rows = [(line, row) for _, line, row in csv_rows(open_source(path).text.value, str(path))]
    head = [name.strip() for name in rows[0][1]] if rows else []
    if [head.count(name) for name in ("worker", "family")] != [1, 1]:
        seen = ", ".join(head) or "nothing"
        message = f"a table of families has columns worker and family, with a comma, not {seen}"
        if {"worker", "family"} <= set(head):
            message = f"a table of families has the columns worker and family once, not {seen}"
        raise FormatError([Fault(message, str(path), 1, kind="header")])
    found: dict[str, str] = {}
    faults: list[Fault] = []
    for line, row in rows[1:]:
        if not any(map(str.strip, row)):
            continue
        cells = {name: cell.strip() for name, cell in zip(head, row, strict=False)}
        worker = cells.get("worker", "")
        message = f"{len(row)} cells for {len(head)} columns" if len(row) != len(head) else ""
        message = message or _clash(worker, cells["family"], found)
        if message:
            faults.append(Fault(message, str(path), line, worker=worker, kind="family"))
    if faults:
        raise FormatError(faults)
    return {worker: name for worker, name in found.items() if name}


def _clash(worker: str, family: str, found: dict[str, str]) -> str:
    """Take the family of a worker, and return what is wrong with it, "" if nothing is."""
    if not worker:
        return "the worker is empty"
    known = found.setdefault(worker, family)
    if known == family:
        return ""
    return f"the worker is in {f'family {known!r}' if known else 'no family'} already"


def names_nobody(families: Any) -> bool:
    """Return whether a file of families has a heading and names no family."""
    if not isinstance(families, str | Path) or families in {"auto", "none"}:
        return False
    return Path(families).is_file() and not read_families(families)  # a pipe can be read once
