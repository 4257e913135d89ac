"""How soon `goldspan --help` and `import goldspan` answer, beside a bare Python."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from pairs import Row, compare


def run() -> list[Row]:
    """Run both; the promise is a quarter of a second for the help."""
    help_row = compare("goldspan --help (python -c pass)", _nothing, _help, _bare, rounds=9)
    import_row = compare("import goldspan (python -c pass)", _nothing, _import, _bare, rounds=9)
    limit = 0.25
    return [
        Row(**{**vars(help_row), "wanted": f"≤ {limit} s", "ok": help_row.ours <= limit}),
        import_row,
    ]


def _nothing() -> Any:
    return None


def _call(*words: str) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


def _help(_: Any) -> None:
    _call("-m", "goldspan", "--help")


def _import(_: Any) -> None:
    _call("-c", "import goldspan")


def _bare(_: Any) -> None:
    _call("-c", "pass")
