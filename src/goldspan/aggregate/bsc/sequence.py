"""Bayesian sequence combination with each of the five worker models (MATH section 4; paper 001).

    t_1 ~ Cat(T_start), t_n ~ Cat(T_{t_{n-1}}), c^k_n ~ A^k(t_n, c^k_{n-1}, .)

q(t) keeps the chain, everything else factorises; what the encoding forbids is impossible, so that
every result is well-formed. `+words` adds a Dirichlet over word types per label. On items of one
token `bsc-cm` is IBCC.
"""

from __future__ import annotations

from goldspan.aggregate.bsc.family import Variational


class BscAcc(Variational):
    """BSC with one probability of being right per worker."""

    name = "bsc-acc"
    worker_model = "acc"


class BscMace(Variational):
    """BSC with workers who know or guess by habit."""

    name = "bsc-mace"
    worker_model = "mace"


class BscCv(Variational):
    """BSC with a probability of being right per worker and label."""

    name = "bsc-cv"
    worker_model = "cv"


class BscCm(Variational):
    """BSC with a confusion matrix per worker."""

    name = "bsc-cm"
    worker_model = "cm"


class BscSeq(Variational):
    r"""BSC with a confusion matrix per worker and label given before.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\tc\nRome\tB-LOC\tB-LOC\tO\n", format="wide")
    >>> result = BscSeq().fit(crowd).result_
    >>> result.tags, result.converged
    ([['B-LOC']], True)
    """

    name = "bsc-seq"
    worker_model = "seq"
