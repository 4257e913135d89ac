"""What may be a name or a key: text that every database can hold."""

from __future__ import annotations

from goldspan.errors import InputError

MOST_CHARACTERS = 1_000


def check_name(word: str, what: str) -> str:
    """Check a name, and give it.

    Raises:
        InputError: It is no text, empty, too long, or holds NUL or half a character.

    >>> check_name("w1", "a worker")
    'w1'
    """
    if not isinstance(word, str) or not 0 < len(word) <= MOST_CHARACTERS:
        raise InputError(f"{what} must be text of 1 to {MOST_CHARACTERS} characters, not {word!r}")
    if not is_name(word):
        raise InputError(f"{what} {word!r} holds NUL or half of a surrogate pair: rename it")
    return word


def is_name(word: str) -> bool:
    """Whether text can be a name.

    >>> is_name("w1"), is_name(""), is_name("a" + chr(0))
    (True, False, False)
    """
    if not isinstance(word, str) or not 0 < len(word) <= MOST_CHARACTERS or "\0" in word:
        return False
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
