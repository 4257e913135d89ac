"""A team of workers in a TOML file: a list, or a table of workers by id."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from goldspan.errors import InputError
from goldspan.simulate.base import SimulatedWorker
from goldspan.simulate.team import read_team

HELP = 'workers = ["flip(0.1) x3", …], or a table [workers] with ana = "flip(0.1)"'


def read_team_file(path: str | Path) -> dict[str, SimulatedWorker]:
    """Read the workers of a crowd from a TOML file.

    Args:
        path: A file with `workers = ["flip(0.1) x3", "ana = acc"]`, or with a table `[workers]` in
            which `ana = "flip(0.1)"` is a worker and `"flip(0.1)" = 3` are three of them.

    Raises:
        InputError: The file cannot be read or holds something else.
        UnknownNameError: There is no such kind of worker.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    workers: Any = content.get("workers")
    is_list = isinstance(workers, list) and all(isinstance(one, str) for one in workers)
    is_table = isinstance(workers, dict) and all(isinstance(v, str | int) for v in workers.values())
    if set(content) != {"workers"} or not (is_list or is_table):
        raise InputError(f"{path}: it must hold {HELP}, and nothing else")
    return read_team(workers)
