"""Makes `naive_greedy` importable: this folder is no package, for `select` is Python's own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
