"""Arrays as kernels take them, where Numba need not be imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fixed(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return a read-only array of a type: kernels that read it are compiled for no other kind."""
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view
