"""The papers' tables and figures, redone: one file per study."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldspan.errors import InputError, UnknownNameError
from studies.registry import STUDIES, WITHOUT_DATA

if TYPE_CHECKING:
    from studies.table import Study

__all__ = ["STUDIES", "options_of", "run_study"]


def run_study(name: str, data: str | Path | None = None, **options: Any) -> Study:
    """Redo a study.

    Args:
        name: Its name in `STUDIES`.
        data: The folder with the real data sets; a study that makes all its data needs none.
        options: What the study itself takes, for example `progress`; `options_of` lists them.

    Raises:
        UnknownNameError: There is no such study.
        InputError: The data it needs are not there, or it takes no such option.
    """
    known = options_of(name)
    for option in options:
        if option not in known:
            raise InputError(f"study {name} has no option {option!r}: it has {', '.join(known)}")
    folder = None if data is None or name in WITHOUT_DATA else Path(data)
    if name not in WITHOUT_DATA and (folder is None or not folder.is_dir()):
        what = "no folder is given" if folder is None else f"{folder} is no folder"
        raise InputError(f"{what}: study {name} needs the real data sets (--data DIR)")
    study: Study = _function(name)(folder, **options)
    return study


def options_of(name: str) -> list[str]:
    """List what a study takes beside its data.

    Raises:
        UnknownNameError: There is no such study.

    >>> options_of("bsc")[:2]
    ['progress', 'methods']
    """
    return [one for one in signature(_function(name)).parameters if one != "data"]


def _function(name: str) -> Callable[..., Any]:
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    module, function = STUDIES[name][0].split(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
