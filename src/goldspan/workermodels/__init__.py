"""How workers err: acc, mace, cv, cm, seq, one file each (paper 001; MATH section 3)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from goldspan._lazy import lazy
from goldspan.errors import UnknownNameError
from goldspan.workermodels.models import MODELS

if TYPE_CHECKING:
    from goldspan.workermodels.models import Prior, Rows, WorkerModel

__all__ = ["MODELS", "Prior", "Rows", "WorkerModel", "get_worker_model"]

__getattr__ = lazy(
    __name__,
    {
        "Prior": "goldspan.workermodels.models",
        "Rows": "goldspan.workermodels.models",
        "WorkerModel": "goldspan.workermodels.models",
    },
)


def get_worker_model(name: str) -> WorkerModel[Any]:
    """Make a worker model by its name.

    Raises:
        UnknownNameError: There is no such model.
    """
    if name not in MODELS:
        raise UnknownNameError("worker model", name, MODELS)
    module, attribute = MODELS[name][0].split(":")
    made: WorkerModel[Any] = getattr(import_module(module), attribute)()
    return made
