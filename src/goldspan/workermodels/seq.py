"""`seq`, the sequential worker: what is given depends on the truth and on the label given before.

One Dirichlet over the labels given per worker, previous label and true label (paper 001; Simpson
and Gurevych 2019): it learns that someone opens spans early, forgets to close them, or goes on with
I after every B. At an item's first token the previous label is `O`.
"""

from __future__ import annotations

from goldspan.workermodels.cm import ConfusionMatrix


class Sequential(ConfusionMatrix):
    """`cm` with memory."""

    name = "seq"
    has_memory = True
