"""A section of a plan: a table of keys, each of an exact type."""

from __future__ import annotations

from typing import Annotated
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from goldspan.errors import InputError
from goldspan.money import to_micro


def _money(value: str | float) -> str | float:
    to_micro(value, "it")
    return value


def _currency(value: str) -> str:
    """Reject what cannot be stored or stand in a line."""
    if any(category(mark) in {"Cc", "Cs"} for mark in value):
        raise InputError(f"must be text without control characters, such as EUR, not {value!r}")
    return value


def _name(value: str) -> str:
    """Reject what cannot stand in the names of files and the addresses of pages."""
    usable = all(mark in " .-_" or category(mark)[0] in "LMN" for mark in value)
    if not usable or not 1 <= len(value) <= 100 or not value[0].isalnum():
        raise InputError(
            "must be 1 to 100 letters, digits, spaces, points, dashes and underscores, beginning "
            f"with a letter or digit, not {value!r}"
        )
    return value


Name = Annotated[StrictStr, AfterValidator(_name)]
Words = Annotated[tuple[StrictStr, ...], Field(strict=False)]
Money = Annotated[StrictStr | StrictInt | StrictFloat, AfterValidator(_money)]
Currency = Annotated[str, AfterValidator(_currency)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A table of the plan: frozen, of exact types, without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
