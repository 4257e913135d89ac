"""How workers share their mistakes where no gold tells: as those of public crowds do.

Answers alone show where workers differ, never where most of them are wrong together. So the
difficulty is learnt with the crowd's own result in the place of gold, and the share of items on
which that result itself is wrong, which no answer tells, is drawn from what public crowds had. The
results of `ds` were wrong on .06 (snow_temp), .11 (bluebirds), .16 (dog) and .35 (face_sentiment)
of the items: mean .17, standard deviation .13, nearly those of Beta(1, 5). How much the workers of
a crowd differ from the result says nothing of it there (.25, .33, .25, .24).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from goldspan.aggregate import Consensus
from goldspan.crowd.gold import translate
from goldspan.hiring.difficulty import Difficulty, fit_difficulty

WRONG_RESULTS = (1.0, 5.0)
"""Beta distribution of the share of items on which a crowd's result is wrong."""


def typical_difficulty(
    result: Consensus, *, workers: pa.Array | None = None, random_state: int = 0
) -> Difficulty:
    r"""Take the result of a crowd for gold that is as often wrong as those of public crowds.

    Args:
        result: Of a crowd with single labels.
        workers: As for `fit_difficulty`.
        random_state: Seed of the draws.

    Raises:
        InputError: Items are not single labels, or a worker is unknown.

    >>> import goldspan
    >>> rows = "".join(f"{i},{w},{'y' if i % 4 else 'n'}\n" for i in range(20) for w in "abc")
    >>> crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    >>> found = typical_difficulty(goldspan.aggregate(crowd, "ds"))
    >>> found.mistakes, bool(0.1 < found.misleading.mean() < 0.25)
    ('typical', True)
    """
    crowd = result.crowd
    codes = translate(result.codes, result.tagset, crowd.tagset)
    found = fit_difficulty(
        crowd.with_gold(codes.astype(np.int16)), workers=workers, random_state=random_state
    )
    wrong = np.random.default_rng(random_state).beta(*WRONG_RESULTS, len(found.spread))
    return replace(found, misleading=wrong, mistakes="typical")
