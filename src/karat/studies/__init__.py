"""The papers' tables and figures, redone: one file per study."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, UnknownNameError
from karat.studies.registry import STUDIES

if TYPE_CHECKING:
    from karat.studies.table import Study

__all__ = ["STUDIES", "run_study"]


def run_study(name: str, data: str | Path, **options: Any) -> Study:
    """Redo a study.

    Args:
        name: Its name in `STUDIES`.
        data: The folder with the real data sets.
        options: What the study itself takes, for example `progress`.

    Raises:
        UnknownNameError: There is no such study.
        InputError: The data it needs are not there.
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    folder = Path(data)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: a study needs the real data sets (--data DIR)")
    module, function = STUDIES[name][0].split(":")
    study: Study = getattr(import_module(module), function)(folder, **options)
    return study
