"""What the library calls arguments, a command calls options: its messages say them so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def in_options(names: Mapping[str, str]) -> Iterator[None]:
    """Put the command's options in place of arguments in the message of a refusal.

    Args:
        names: What the message says, and what it is to say. A word is replaced as a whole, not
            within another one or the name of a file.

    Raises:
        InputError: What was raised within, in these words.

    >>> from goldspan.errors import InputError
    >>> with in_options({"w_bad": "--bad"}):
    ...     raise InputError("w_bad must be below w_good")
    Traceback (most recent call last):
    goldspan.errors.InputError: --bad must be below w_good
    """
    from goldspan.errors import InputError

    try:
        yield
    except InputError as error:
        said = str(error)
        for name, option in names.items():
            pattern = rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)"
            said = option.join(re.split(pattern, said))
        error.args = (said, *error.args[1:])
        raise


def plural(n: int, word: str) -> str:
    """Write a number of things.

    >>> plural(1, "item"), plural(2, "item")
    ('1 item', '2 items')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"
