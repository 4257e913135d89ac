"""A crowd made ready for the engine, and the name of a run on it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from goldspan.aggregate.bsc.engine import Model
from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.tables import Sums
from goldspan.crowd import Crowd


@dataclass(frozen=True, eq=False)
class Prepared:
    """A crowd made ready for the engine.

    Attributes:
        crowd: The crowd.
        shards: Its evidence.
        model: What stays fixed.
        plain_bonus: epsilon0 of workers who are not trusted.
        sums: The statistics to begin with.
        notes: What to tell.
        dependence: How much workers share their mistakes, for methods with +crf.
    """

    crowd: Crowd
    shards: Sequence[Evidence]
    model: Model
    plain_bonus: float
    sums: Sums
    notes: tuple[str, ...]
    dependence: float = 0.0

    def fingerprint(self, method: str, params: Mapping[str, Any], *, is_warm: bool) -> str:
        """Name a run by its answers, tags and parameters, and by what it begins with.

        Args:
            method: Name of the method.
            params: Its parameters, all with a lasting `repr`; a history counts by its numbers.
            is_warm: Whether it goes on from an earlier result, whose statistics then count.
        """
        codec = self.crowd.tagset
        named = (method, sorted(params.items()), codec.encoding, codec.tags)
        digest = hashlib.blake2b(repr(named).encode(), digest_size=16)
        parts: list[Any] = [getattr(s, field.name) for s in self.shards for field in fields(s)]
        rows, prior = self.model.rows, self.model.prior
        parts += [rows.worker, rows.previous, rows.label, prior.bonus]
        parts += [] if prior.history is None else [prior.history]
        parts += [self.sums.counts, self.sums.truth] if is_warm else []
        for part in parts:
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()
