"""Setting values into the templates of pages.

Everything that people wrote is escaped; what a script reads stands in a JSON block, which the
content security policy does not run.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from goldspan import __version__
from goldspan.server.assets import assets


def render_page(name: str, **values: Any) -> str:
    """Give a page as HTML.

    Args:
        name: Of the template in `templates/`.
        values: What stands in its places; a name without a value is an error.
    """
    return environment().get_template(name).render(version=__version__, **values)


def page_answer(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Give a page as an answer that nobody keeps."""
    headers = {"Cache-Control": "no-store"}
    return HTMLResponse(render_page(name, **values), status_code=status, headers=headers)


def message_page(title: str, message: str, status: int = 200) -> HTMLResponse:
    """Give a page that says one thing: an error, a link that has expired, the end.

    Args:
        title: In a few words.
        message: What happened and what to do; paragraphs stand between empty lines.
        status: Of HTTP.
    """
    return page_answer("message.html.j2", status, title=title, paragraphs=message.split("\n\n"))


@cache
def environment() -> Environment:
    """Give the templates of the package; the desk's lie among them."""
    made = Environment(
        loader=PackageLoader("goldspan.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["static"] = assets().address
    made.globals["modules"] = assets().modules
    return made
