"""What a plan says of logging in by OpenID Connect: `[oidc]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StrictStr

from goldspan.campaign.section import Section, Words
from goldspan.campaign.webhooks import check_variable

SECRET = "GOLDSPAN_OIDC_SECRET"  # noqa: S105 - the name of a variable
SUBJECT = "sub:"
"""How an entry begins that names a subject and no address."""


class OpenId(Section):
    """A provider of identities, and who of its people may enter.

    Attributes:
        issuer: Its address, under which /.well-known/openid-configuration is.
        client_id: By which it knows this server.
        secret: The variable of the environment that holds the client's secret, if it has one.
        name: What the login page calls it.
        scopes: Asked for beside "openid".
        requesters: Who enters as the requester: e-mail addresses that the provider has verified,
            or "sub:" and a subject.
        reviewers: Who enters as a reviewer, in the same way.
        claim: A claim whose values let people in, such as "groups".
        requester_values: Values of the claim that a requester has one of.
        reviewer_values: The same of a reviewer.
        local: Whether the provider may be reached by http://, for tests on one machine.
    """

    issuer: StrictStr
    client_id: StrictStr
    secret: Annotated[StrictStr, AfterValidator(check_variable)] = SECRET
    name: StrictStr = "single sign-on"
    scopes: Words = ("email",)
    requesters: Words = ()
    reviewers: Words = ()
    claim: StrictStr | None = None
    requester_values: Words = ()
    reviewer_values: Words = ()
    local: bool = False


def faults_of(plan: OpenId | None, *, served: bool) -> Iterator[str]:
    """List what is wrong with the section."""
    if plan is None:
        return
    if not served:
        yield 'oidc: belongs to source = "web"'
    if not is_address(plan.issuer, local=plan.local):
        yield "oidc.issuer: must be an address such as https://login.example.org, without ? and #"
    if not plan.client_id.strip():
        yield "oidc.client_id: is empty"
    values = (*plan.requester_values, *plan.reviewer_values)
    if bool(values) != (plan.claim is not None):
        yield "oidc.claim: belongs to requester_values or reviewer_values, which name its values"
    if not (values or plan.requesters or plan.reviewers):
        yield "oidc.requesters: nobody could log in: name e-mail addresses, or a claim with values"
    for key in ("requesters", "reviewers"):
        for one in getattr(plan, key):
            if not one.startswith(SUBJECT) and "@" not in one.strip("@"):
                yield f'oidc.{key}: {one!r} is neither an e-mail address nor "sub:" and a subject'


def is_address(url: str, *, local: bool) -> bool:
    """Whether an address of the provider can be used.

    >>> is_address("https://a.example", local=False), is_address("http://a.example", local=False)
    (True, False)
    """
    try:
        place = urlsplit(url)
        good = bool(place.hostname) and place.port != 0
    except ValueError:
        return False
    schemes = {"https", "http"} if local else {"https"}
    return good and place.scheme in schemes and not place.fragment and "@" not in place.netloc
