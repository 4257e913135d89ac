"""From items to attribute–value pairs: fitted on the pool, kept as JSON, applied to new items.

Texts have the features of the tagger's templates, each once however often it occurs; a table has a
value per column; a sparse matrix is taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.errors import InputError, UnknownNameError
from goldspan.old_name import OLD_NAME
from goldspan.select.columns import MISSING, Column
from goldspan.select.discretise import read_discretiser
from goldspan.select.incidence import Incidence
from goldspan.select.pool import Pool
from goldspan.tagger.features import FeatureMap
from goldspan.tagger.templates import Template, read_templates

TEMPLATES = ("lower", "lower[-1]", "lower[1]", "kind", "suffix3")
"""Of texts, unless others are asked for: words, their neighbours, and what they look like."""
FORMAT, OLD_FORMAT, VERSION = "goldspan-attribute-values", f"{OLD_NAME}-attribute-values", 1
SKIP = "skip"
"""The rule of columns that are not attributes, such as a label."""
_STRING = pa.large_string()


@dataclass(frozen=True)
class Features:
    """What the attribute–value pairs of a pool are; made by `Features.fit`.

    Attributes:
        words: Templates with their values, for texts.
        columns: The columns of a table, with their values.
        width: Number of columns of a sparse matrix.
    """

    words: FeatureMap | None = field(default=None, repr=False)
    columns: tuple[Column, ...] = ()
    width: int = 0

    @classmethod
    def fit(
        cls,
        pool: Any,
        *,
        templates: str | Path | Sequence[str] = TEMPLATES,
        hash_bits: int = 0,
        numeric: str = "quantile(10)",
        discretisers: Mapping[str, str] | None = None,
        missing: str = "skip",
    ) -> Features:
        """Learn the values that a pool has.

        Args:
            pool: As for `Pool.of`.
            templates: Of texts, as for taggers.
            hash_bits: Texts: hash the features into 2 ** hash_bits values, so that other texts
                have theirs too; 0: number those of the pool.
            numeric: How columns of numbers become values: "nearest(10)" (paper 003),
                "quantile(10)", "log2" or "categorical".
            discretisers: Other rules by column; "skip" leaves a column out.
            missing: "skip": a missing cell is no value; "value": it is one of its own.

        Raises:
            UnknownNameError: There is no such rule, template or column.

        >>> made = Features.fit(np.array([[12.0], [27.0], [14.0]]), numeric="nearest(10)")
        >>> [made.name(value) for value in range(made.n_values)]
        ['0=10', '0=30']
        """
        items = Pool.of(pool)
        if missing not in MISSING:
            raise UnknownNameError("choice for missing cells", missing, MISSING)
        if items.text is not None:
            parsed = read_templates(templates)
            return cls(words=FeatureMap.fit(items.text, parsed, hash_bits=hash_bits)[0])
        if items.matrix is not None:
            return cls(width=items.matrix.shape[1])
        cells = items.columns or {}
        rules = dict(discretisers or {})
        for name in rules:
            if name not in cells:
                raise UnknownNameError("column", name, cells)
        fitted = (
            Column.fit(name, column, read_discretiser(rules.get(name, numeric)), missing)
            for name, column in cells.items()
            if rules.get(name) != SKIP
        )
        return cls(columns=tuple(fitted))

    @property
    def n_values(self) -> int:
        """Number of attribute–value pairs."""
        if self.words is not None:
            return self.words.n_features
        return self.width or sum(map(len, self.columns))

    def transform(self, pool: Any) -> Incidence:
        """Find the attribute–value pairs of items; what the fitted pool has not has none.

        Raises:
            InputError: The items are of another sort, or a column is missing.
        """
        items = Pool.of(pool)
        sort = "texts" if self.words else "a sparse matrix" if self.width else "a table"
        if self.words is not None and items.text is not None:
            found = self.words.transform(items.text)
            return Incidence.of(found.bounds[found.offsets], found.ids, self.n_values)
        if self.width and items.matrix is not None:
            if items.matrix.shape[1] != self.width:
                raise InputError(f"a matrix of {items.matrix.shape[1]} columns, not {self.width}")
            return Incidence.of_matrix(items.matrix)
        if self.words is None and not self.width and items.columns is not None:
            return self._of_columns(items)
        raise InputError(f"these attribute values were fitted on {sort}: the items are another")

    def name(self, value: int) -> str:
        """Say what a value is, for example `lower=rome` or `age=20`.

        Raises:
            InputError: There is no such value.
        """
        if not 0 <= value < self.n_values:
            raise InputError(f"there is no value {value}: there are {self.n_values}")
        if self.words is not None:
            return self.words.name(value)
        for column in self.columns:
            if value < len(column):
                return column.word(value)
            value -= len(column)
        return f"column {value}"

    def to_json(self) -> str:
        """Write everything as JSON, with the version of the format."""
        facts: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        facts |= {"width": self.width, "columns": [column.facts() for column in self.columns]}
        if (words := self.words) is not None:
            facts["words"] = {
                "templates": [str(template) for template in words.templates],
                "hash_bits": words.hash_bits,
                "values": {name: array.to_pylist() for name, array in words.values.items()},
                "keys": [keys.tolist() for keys in words.keys],
            }
        return json.dumps(facts, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Features:
        """Read what `to_json` wrote.

        Raises:
            InputError: It is something else, damaged, or of a newer version.

        >>> made = Features.fit([["Rome", "is", "old"]])
        >>> Features.from_json(made.to_json()).name(0) == made.name(0)
        True
        """
        try:
            facts = json.loads(text)
            is_ours = facts["format"] in {FORMAT, OLD_FORMAT}
            version = int(facts["version"]) if is_ours else 0
            if version == VERSION:
                columns = tuple(Column.of_facts(one) for one in facts["columns"])
                return cls(_words_of(facts.get("words")), columns, int(facts["width"]))
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            version = 0
        if version:
            raise InputError(
                f"these attribute values are of version {version}; this goldspan reads {VERSION}"
            )
        raise InputError("this is no JSON of attribute values, or it is damaged")

    def _of_columns(self, items: Pool) -> Incidence:
        cells = items.columns or {}
        lost = [column.name for column in self.columns if column.name not in cells]
        if lost:
            raise InputError(f"columns are missing: {', '.join(lost)}")
        ids = np.full((items.n_items, len(self.columns)), -1, np.int64)
        first = 0
        for n, column in enumerate(self.columns):
            codes = column.codes(cells[column.name])
            ids[:, n] = np.where(codes >= 0, first + codes, -1)
            first += len(column)
        known = ids >= 0
        bounds = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return Incidence.of(bounds, ids[known], self.n_values)


def _words_of(facts: dict[str, Any] | None) -> FeatureMap | None:
    if facts is None:
        return None
    templates = tuple(Template.parse(text) for text in facts["templates"])
    values = {name: pa.array(words, _STRING) for name, words in facts["values"].items()}
    keys = tuple(np.array(one, np.int64) for one in facts["keys"])
    return FeatureMap(templates, values, keys, {}, int(facts["hash_bits"]))
