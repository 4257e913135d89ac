"""Feature templates as data: `lower`, `lower[-1]`, `kind[-1]|kind`, `column:pos[1]`.

A template is one attribute at a place relative to the token, or several joined by `|`; a feature is
a template with the values it takes. Beyond the ends of an item the value is a mark of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from goldspan.errors import InputError, UnknownNameError
from goldspan.tagger.attributes import ATTRIBUTES

COLUMN = "column:"
GAZETTEER = "gazetteer:"
DOCUMENT = ("doc_title", "doc_lower", "doc_kinds")
"""Attributes that look at all of the token's document."""
_PART = re.compile(r"^(?P<name>[\w:.-]+)(\[(?P<place>[+-]?\d+)\])?$")


@dataclass(frozen=True, order=True)
class Part:
    """An attribute at a place.

    Attributes:
        name: Of the attribute; `column:NAME` for a given column, `gazetteer:NAME` for a list.
        place: Tokens to the right (negative: left) of the token.
    """

    name: str
    place: int = 0

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.name}[{self.place}]" if self.place else self.name


@dataclass(frozen=True)
class Template:
    """One or several parts, whose values together make a feature."""

    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template.

        Raises:
            InputError: It is not written like one.
            UnknownNameError: There is no such attribute.

        >>> Template.parse("lower[-1]|kind").parts
        (Part(name='lower', place=-1), Part(name='kind', place=0))
        """
        parts = []
        for piece in str(text).split("|"):
            found = _PART.match(piece.strip())
            if not found:
                raise InputError(
                    f"template {text!r}: {piece!r} must look like lower, lower[-1] or column:pos[1]"
                )
            name = found["name"]
            known = name in ATTRIBUTES or name in DOCUMENT
            if not known and not name.startswith((COLUMN, GAZETTEER)):
                names = [*ATTRIBUTES, *DOCUMENT, f"{COLUMN}NAME", f"{GAZETTEER}NAME"]
                raise UnknownNameError("attribute", name, names)
            parts.append(Part(name, int(found["place"] or 0)))
        return cls(tuple(parts))

    def __str__(self) -> str:
        """Write it as it is read."""
        return "|".join(map(str, self.parts))


def _around(names: Iterable[str], places: Iterable[int]) -> list[str]:
    return [f"{name}[{place}]" for place in places for name in names]


DEFAULT: tuple[str, ...] = (
    "word",
    "lower",
    "shape",
    "short_shape",
    "kind",
    "digits",
    *(f"{side}fix{n}" for side in ("pre", "suf") for n in (1, 2, 3, 4)),
    "is_title",
    "is_upper",
    "has_digit",
    "has_hyphen",
    *_around(("lower", "kind", "suffix3"), (-2, -1, 1, 2)),
    *_around(("short_shape",), (-1, 1)),
    "lower[-1]|lower",
    "lower|lower[1]",
    "kind[-1]|kind",
    "kind|kind[1]",
    "kind[-1]|kind|kind[1]",
    "lower[-1]|kind",
    "kind|lower[1]",
    "doc_title|kind",
    "doc_lower|kind",
)
"""What taggers use unless they are told otherwise."""

RODRIGUES: tuple[str, ...] = (
    "lower",
    *(f"{side}fix{n}" for side in ("pre", "suf") for n in (1, 2, 3, 4)),
    "is_title",
    "is_upper",
    "has_digit",
    "has_hyphen",
    "is_punctuation",
    *_around(("lower", "is_title"), (-2, -1, 1, 2)),
)
"""Paper 000's features as we assume them: its Table 1 is lost from the text we have."""

HMM: tuple[str, ...] = ("lower", "suffix3", "short_shape", "lower[-1]", "lower[1]")
"""Few features that overlap little, for the model that takes them to be independent."""

SETS: dict[str, tuple[str, ...]] = {"default": DEFAULT, "rodrigues": RODRIGUES, "hmm": HMM}


def read_templates(source: str | Path | Iterable[str]) -> tuple[Template, ...]:
    """Take templates from a named set, a TOML file (`templates = […]`), or a list.

    Raises:
        InputError: No such set or file, a faulty template, or none at all.
    """
    if isinstance(source, str) and source in SETS:
        texts: Iterable[str] = SETS[source]
    elif isinstance(source, str | Path):
        texts = _from_file(Path(source))
    else:
        texts = source
    found = tuple(dict.fromkeys(Template.parse(text) for text in texts))
    if not found:
        raise InputError("there is no feature template")
    return found


def _from_file(path: Path) -> list[str]:
    import tomllib

    if path.suffix != ".toml":
        raise UnknownNameError("feature set", str(path), [*SETS, "FILE.toml"])
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    texts = content.get("templates")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{path}: it must hold a list of strings: templates = ["lower", …]')
    return texts
