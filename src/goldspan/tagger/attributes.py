"""What a word looks like: functions from a word to the values that templates name.

Each is applied once per distinct word. A value of "" means that the word has none, and gives no
feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby

MAX_AFFIX = 4


def shape(word: str) -> str:
    """Give the shape: letters to X and x, digits to 9, the rest as it is.

    >>> shape("McDonald-12")
    'XxXxxxxx-99'
    """
    return "".join(_class(character) for character in word)


def short_shape(word: str) -> str:
    """Give the shape with runs made one.

    >>> short_shape("McDonald-12")
    'XxXx-9'
    """
    return "".join(key for key, _ in groupby(shape(word)))


def digits(word: str) -> str:
    """Give the word with its digits made 9, "" if it has none.

    >>> digits("1996-08-22"), digits("word")
    ('9999-99-99', '')
    """
    found = "".join("9" if character.isdigit() else character for character in word)
    return found if found != word or "9" in word else ""


def kind(word: str) -> str:
    """Say what kind of word it is: upper, title, lower, mixed, number, punctuation or code.

    >>> [kind(word) for word in ("USA", "Rome", "city", "iPod", "19.5", "--", "B-52")]
    ['upper', 'title', 'lower', 'mixed', 'number', 'punctuation', 'code']
    """
    if not any(character.isalnum() for character in word):
        return "punctuation"
    if not any(character.isalpha() for character in word):
        return "number"
    if any(character.isdigit() for character in word):
        return "code"
    if word.isupper():
        return "initial" if len(word) == 1 else "upper"
    if word.islower():
        return "lower"
    return "title" if word[0].isupper() and word[1:].islower() else "mixed"


def _class(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "9" if character.isdigit() else character


def _affix(word: str, length: int) -> str:
    """Give the first characters, or with a negative length the last; "" if it has no more."""
    if len(word) <= abs(length):
        return ""
    return word[:length] if length > 0 else word[length:]


ATTRIBUTES: dict[str, Callable[[str], str]] = {
    "word": lambda word: word,
    "lower": str.lower,
    "shape": shape,
    "short_shape": short_shape,
    "digits": digits,
    "kind": kind,
    "is_title": lambda word: "1" if word[:1].isupper() else "",
    "is_upper": lambda word: "1" if word.isupper() and len(word) > 1 else "",
    "has_digit": lambda word: "1" if any(c.isdigit() for c in word) else "",
    "has_hyphen": lambda word: "1" if "-" in word else "",
    "is_punctuation": lambda word: "1" if not any(c.isalnum() for c in word) else "",
    "length": lambda word: str(min(len(word), 12)),
    **{f"prefix{n}": partial(_affix, length=n) for n in range(1, MAX_AFFIX + 1)},
    **{f"suffix{n}": partial(_affix, length=-n) for n in range(1, MAX_AFFIX + 1)},
}
"""The attributes by name."""
