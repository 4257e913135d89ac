"""Gold that does not suit the answers: labels that nobody gave, items that nobody was shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError

SHOWN = 5
"""Labels that a sentence names."""
LEAST = 10
"""So many answers are not all wrong by chance: the labels are written otherwise."""


def notes_on_gold(crowd: Crowd, gold: NDArray[np.int16]) -> tuple[str, ...]:
    """Say which known labels nobody gave, and which items with known labels are not in the crowd.

    Of tags with spans it is the types that are compared: nobody need mark everything with them.

    Args:
        crowd: The crowd, its tags joined with those of the gold.
        gold: int16 [n_truths, n_tokens], known tags, -1 unknown.

    Raises:
        InputError: Nobody gave any of the known labels, and there are answers enough, or a label
            that differs in case or space alone, to say that they are written otherwise.
    """
    what, names, of = _vocabulary(crowd)
    given, known = np.unique(of[crowd.latest.codes]), of[gold]
    given = given[given >= 0]
    wanted = np.unique(known[known >= 0])
    unheard = np.setdiff1d(wanted, given)
    if not (gold >= 0).any():
        return ()
    # Who marks nothing gives no type, of whatever name.
    if not len(unheard) or not len(given):
        return tuple(_unseen(crowd))
    there, answers = ([names[label] for label in labels] for labels in (unheard, given))
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    where = np.unique(item[np.isin(known, unheard).any(axis=0)])
    n_answers = int(np.isin(crowd.latest.item, where).sum())
    some = _listed(there, answers)
    if len(unheard) == len(wanted) and (n_answers >= LEAST or "did you mean" in some):
        raise InputError(
            f"the gold has the {_plural(what, wanted)} {some}, and the answers have "
            f"{_listed(answers, [])}: nobody gave what the gold has, so that every answer would be "
            "wrong; write both alike"
        )
    note = (
        f"nobody gave the {_plural(what, unheard)} {some} of the gold: {n_answers} answers to "
        f"{len(where)} {_plural('item', where)} with it are wrong, and guessing is taken to be "
        f"among {len(given)} + {len(unheard)} {what}s"
    )
    return (*_unseen(crowd), note)


def _plural(word: str, things: NDArray[np.int64]) -> str:
    """Write the word for one thing, or for several."""
    return word if len(things) == 1 else f"{word}s"


def _vocabulary(crowd: Crowd) -> tuple[str, list[str], NDArray[np.int64]]:
    """Give what is compared: its name, the words, and the word of every code, -1 none (last)."""
    codec = crowd.tagset
    if codec.rules.is_plain:
        return "label", list(codec.tags), np.append(np.arange(len(codec.tags)), -1)
    types = np.asarray(codec.type_of, np.int64)[: len(codec.tags)]
    return "type", list(codec.types), np.append(types, -1)


def _listed(labels: list[str], known: list[str]) -> str:
    """Write labels, each with the known one that differs in case or space alone."""
    alike = {_plain(label): label for label in known}
    words = [
        f"{label!r} (did you mean {alike[_plain(label)]!r}?)"
        if _plain(label) in alike
        else repr(label)
        for label in labels[:SHOWN]
    ]
    more = len(labels) - SHOWN
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def _plain(label: str) -> str:
    return label.strip().casefold()


def _unseen(crowd: Crowd) -> list[str]:
    """Repeat what the reader said of the last file of gold, unless all of it was found."""
    notes = [note for note in crowd.import_report.notes if note.startswith("gold for ")]
    return [note for note in notes[-1:] if "; 0 others in " not in note]
