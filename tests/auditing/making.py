"""Labels with confidences and a known truth, for tests of audits."""

from __future__ import annotations

import json

import numpy as np

import goldspan
from goldspan.crowd import Crowd

TYPES = ("PER", "LOC")


def lines(rows) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def spans(tags) -> list[dict]:
    """Return tags of one token each, None for none, as spans."""
    return [{"type": t, "start": n, "end": n + 1} for n, t in enumerate(tags) if t]


def span_labels(n: int, seed: int = 0, *, wrong: float = 0.2) -> tuple[Crowd, dict[str, list]]:
    """Make labels of six tokens each, and the truth as tags by item; confidences say how wrong."""
    rng = np.random.default_rng(seed)
    rows, truth = [], {}
    for k in range(n):
        doubt = wrong * rng.exponential()
        real = [TYPES[rng.integers(2)] if rng.random() < 0.3 else None for _ in range(6)]
        seen = list(real)
        for at in range(6):
            if rng.random() < doubt / 3:
                seen[at] = None if seen[at] else TYPES[0]
        row = {"item": f"i{k}", "tokens": [f"w{k}.{at}" for at in range(6)], "gold": spans(seen)}
        rows.append({**row, "confidence": float(np.exp(-2 * doubt))})
        truth[f"i{k}"] = [f"B-{kind}" if kind else "O" for kind in real]
    return goldspan.read_crowd(lines(rows), format="spans"), truth


def single_labels(n: int, seed: int = 0) -> tuple[list[dict], dict[str, str]]:
    """Make single labels, of which a fifth is wrong, and the truth by item."""
    rng = np.random.default_rng(seed)
    truth = {f"i{k}": ("yes", "no")[rng.integers(2)] for k in range(n)}
    other = {"yes": "no", "no": "yes"}
    said = {item: other[one] if rng.random() < 0.2 else one for item, one in truth.items()}
    return [{"item": item, "label": one} for item, one in said.items()], truth
