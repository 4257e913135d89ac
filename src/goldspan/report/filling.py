"""Setting what a report says into its template.

Ids, tokens, labels and messages come from strangers: the templates escape everything, and a
content security policy in the page forbids scripts and requests in any case.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from goldspan import __version__
from goldspan.errors import MissingExtraError
from goldspan.report.wording import count, percent, printable, shorten


def fill_template(name: str, /, **values: Any) -> str:
    """Give a page.

    Args:
        name: Of the template; the parts that it includes lie beside it.
        values: What stands in its places; a name without a value is an error.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report") from None
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"percent": percent, "count": count, "short": shorten}
    return environment.get_template(name).render(version=__version__, **values)


def _read(name: str) -> str:
    return files("goldspan.report").joinpath("templates", name).read_text(encoding="utf-8")


def _clean(value: Any) -> Any:
    return printable(value) if type(value) is str else value
