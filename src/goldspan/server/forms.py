"""Forms of pages that work without a script: read by hand, strictly."""

from __future__ import annotations

from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, Field, ValidationError

from goldspan.server.errors import Refused
from goldspan.server.models import Request as Body

TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 10
Secret = Annotated[str, Field(max_length=1_000)]
Form = TypeVar("Form", bound=BaseModel)


class LoginForm(Body):
    """A password, and the token of the form."""

    csrf: Secret
    password: Secret


class SetupForm(LoginForm):
    """A new password, twice, and the token of the link."""

    token: Secret
    again: Secret


class LogoutForm(Body):
    """The token of the session's page."""

    csrf: Secret


async def form_fields(request: Request) -> dict[str, str]:
    """Give the fields of a form; none if the body is no form, or a field stands twice."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind != TYPE:
        return {}
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, strict_parsing=True,
            max_num_fields=MOST_FIELDS, errors="strict",
        )  # fmt: skip
    except ValueError:
        return {}
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else {}


def read_form(form: type[Form], fields: dict[str, str]) -> Form:
    """Give a form that was filled in.

    Raises:
        Refused: A field is missing, unknown or too long.
    """
    try:
        return form.model_validate(fields)
    except ValidationError:
        words = "The form cannot be read: load the page again."
        raise Refused("invalid", words, 422) from None


Fields = Annotated[dict[str, str], Depends(form_fields)]
