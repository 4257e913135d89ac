"""The package was called karat before; what was made under that name still works.

Files and stores say the old name in their headers, running campaigns hold locks and cookies of it,
and people have set variables and written plugins under it. Whatever is written now says goldspan.
The scripts in browsers have the old name once more, in `server/static/memory.js`.
"""

from __future__ import annotations

import os
import warnings

OLD_NAME = "karat"


class OldNameWarning(FutureWarning):
    """Something is still called by the old name; shown as one line on the command line."""


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or that of its old name with a warning.

    >>> variable("GOLDSPAN_NO_SUCH_VARIABLE") is None
    True
    """
    value = os.environ.get(name)
    if value is not None:
        return value
    old = name.replace("GOLDSPAN_", f"{OLD_NAME.upper()}_", 1)
    value = os.environ.get(old)
    if value is not None:
        # The place of the warning is always this line, so that each variable is told of once.
        warnings.warn(f"{old} is the old name of {name}: rename it", OldNameWarning, stacklevel=1)
    return value
