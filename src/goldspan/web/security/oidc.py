"""Logging in by OpenID Connect: authorization code with PKCE, state and nonce.

The provider's answer is believed if its state is that of this browser's cookie and was not used
before, and its ID token is signed by a key of the provider, for this client, now, with the nonce of
the cookie. Who then enters as what, the plan says (`[oidc]`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b, sha256
from hmac import compare_digest
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from goldspan.campaign.section import is_address
from goldspan.errors import GoldspanError, MissingExtraError
from goldspan.http import ask
from goldspan.plugins import secret_of
from goldspan.store.engine import BoundError
from goldspan.web.errors import Refused
from goldspan.web.models import json_object
from goldspan.web.security.sessions import DESK, MINUTE, POLICY, REVIEWER
from goldspan.web.settings import Keys, Signer

if TYPE_CHECKING:
    import httpx2

    from goldspan.campaign.section import OpenId
    from goldspan.store import SqlLedger

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
              "EdDSA", "Ed25519")  # fmt: skip
"""Of signatures by a key of the provider's; none that anybody could make with a public key."""
SECONDS = 10.0
MOST_BYTES = 1_000_000
"""Of an answer of the provider's."""
FRESH = 3_600.0
"""Seconds for which its description and keys hold."""
PATIENCE = 60.0
"""Seconds between two looks for a key that is not known."""
LEEWAY = 60
"""Seconds by which the provider's clock may be wrong."""
MINUTES = 10
"""How long logging in may take."""
USED = "oidc"
"""Kind of the counts of states that were used."""
CALLBACK = "/login/oidc/callback"


class ProviderError(GoldspanError):
    """The provider cannot be reached, or its answer is not what it must be."""


@dataclass(frozen=True)
class Entered:
    """Who has come in."""

    role: str  # "desk" or "reviewer"
    person: str  # A name that says nothing; the same for the same person


class OpenIdLogin:
    """The login of one server by one provider."""

    def __init__(
        self, plan: OpenId, keys: Keys, ledger: SqlLedger, clock: Callable[[], int], redirect: str,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        self.plan, self._ledger, self._clock = plan, ledger, clock
        self._redirect, self._transport = redirect, transport
        self._signer, self._key = Signer(keys.of("oidc state")), keys.of("oidc person")
        self._known: dict[str, tuple[float, Any]] = {}
        self._turn = Lock()

    @property
    def policy(self) -> str:
        """A name of what the plan says now: sessions that began under another end."""
        words = self.plan.model_dump_json().encode()
        return f"{POLICY}{blake2b(words, digest_size=16).hexdigest()}"

    def begin(self) -> tuple[str, str]:
        """Return the provider's address to which a browser goes, and the cookie that it takes."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        until = self._clock() + MINUTES * MINUTE
        cookie = {"state": state, "nonce": nonce, "verifier": verifier, "until": until}
        parameters = {
            "response_type": "code",
            "client_id": self.plan.client_id,
            "redirect_uri": self._redirect,
            "scope": " ".join(dict.fromkeys(("openid", *self.plan.scopes))),
            "state": state,
            "nonce": nonce,
            "code_challenge": str(create_s256_code_challenge(verifier)),
            "code_challenge_method": "S256",
        }
        address = self._endpoint("authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}", (
            self._signer.sign(cookie)
        )

    def finish(self, cookie: str | None, given: Mapping[str, str]) -> Entered:
        """Return who came back from the provider."""
        facts = self._signer.read(cookie) if cookie else None
        if facts is None or not compare_digest(
            str(facts.get("state", "")).encode(), given.get("state", "").encode()
        ):
            raise Refused("state", "This login was not begun in this browser: begin again.", 403)
        if self._clock() >= int(facts["until"]):
            raise Refused("state", "This login took too long: begin again.", 403)
        try:  # in the store: a second process must know it too
            name = sha256(facts["state"].encode()).hexdigest()
            self._ledger.take(USED, name, 1, self._clock())
        except BoundError:
            raise Refused("state", "This login was used before: begin again.", 403) from None
        if given.get("iss", self.plan.issuer) != self.plan.issuer:
            raise ProviderError("the answer is of another issuer")
        if "error" in given or not given.get("code"):
            raise Refused("oidc", "The provider did not log you in: begin again.", 403)
        claims = self._claims(given["code"], str(facts["verifier"]), str(facts["nonce"]))
        role = role_of(self.plan, claims)
        if role is None:
            words = "You are logged in at the provider, but may not enter here."
            raise Refused("oidc", words, 403)
        who = f"{claims['iss']}\0{claims['sub']}".encode()
        return Entered(role, blake2b(who, key=self._key, digest_size=16).hexdigest())

    # ---- the provider ----

    def _claims(self, code: str, verifier: str, nonce: str) -> Mapping[str, Any]:
        """Exchange a code for an ID token, and return its claims once all of it was checked."""
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self._redirect,
            "code_verifier": verifier, "client_id": self.plan.client_id,
        }  # fmt: skip
        secret = secret_of(self.plan.secret)
        auth = None
        if secret is not None:
            methods = self._metadata().get("token_endpoint_auth_methods_supported")
            if methods is None or "client_secret_basic" in methods:
                auth = (quote_plus(self.plan.client_id), quote_plus(secret))  # RFC 6749, 2.3.1
            else:
                form["client_secret"] = secret
        answer = self._ask("POST", self._endpoint("token_endpoint"), data=form, auth=auth)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderError("the provider gave no ID token")
        return self._checked(token, nonce, answer.get("access_token"))

    def _checked(self, token: str, nonce: str, access: Any) -> Mapping[str, Any]:
        """Check signature, issuer, audience, time and nonce of an ID token."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        found = self._verified(token)
        options = {
            "iss": {"essential": True, "value": self.plan.issuer},
            "aud": {"essential": True, "value": self.plan.client_id},
            "nonce": {"essential": True, "value": nonce},
        }
        parameters = {"nonce": nonce, "client_id": self.plan.client_id, "access_token": access}
        claims = CodeIDToken(found.claims, found.header, options, parameters)
        try:
            claims.validate(now=self._clock() // 1000, leeway=LEEWAY)
        except (JoseError, TypeError, ValueError, AttributeError) as error:
            told = getattr(error, "claim", "") or type(error).__name__
            raise ProviderError(f"the ID token is refused: {told}") from None
        if not isinstance(claims["sub"], str) or not claims["sub"]:
            raise ProviderError("the ID token is refused: sub")
        return dict(claims)

    def _verified(self, token: str) -> Any:
        """Check the signature by the provider's keys; one that is not known is looked for once."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        for again in (True, False):
            keys = self._keys()
            try:
                return jwt.decode(token, KeySet.import_key_set(keys), algorithms=list(ALGORITHMS))
            except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
                if not (again and self._forget_keys()):
                    told = type(error).__name__
                    raise ProviderError(f"the ID token is refused: {told}") from None
        raise AssertionError("the second try returns or raises")

    def _keys(self) -> Any:
        found = self._kept("jwks", self._endpoint("jwks_uri"))
        if not isinstance(found.get("keys"), list):
            raise ProviderError("the provider's keys are not a set of keys")
        return found

    def _forget_keys(self) -> bool:
        """Forget keys that were read some time ago, for the provider may have new ones."""
        with self._turn:
            read, _ = self._known.get("jwks", (0.0, None))
            if time.monotonic() - read < PATIENCE:
                return False
            self._known.pop("jwks", None)
        return True

    def _metadata(self) -> dict[str, Any]:
        issuer = self.plan.issuer.rstrip("/")
        found = self._kept("metadata", f"{issuer}/.well-known/openid-configuration")
        if found.get("issuer") != self.plan.issuer:
            raise ProviderError("the provider's description is of another issuer")
        return found

    def _endpoint(self, name: str) -> str:
        found = self._metadata().get(name)
        if not isinstance(found, str) or not is_address(found, local=self.plan.local):
            raise ProviderError(f"the provider's description has no usable {name}")
        return found

    def _kept(self, name: str, url: str) -> dict[str, Any]:
        """Return what the provider says at an address, as it was an hour ago at most."""
        with self._turn:
            read, found = self._known.get(name, (0.0, None))
        if found is None or time.monotonic() - read >= FRESH:
            found = self._ask("GET", url)
            with self._turn:
                self._known[name] = time.monotonic(), found
        return dict(found)

    def _ask(self, method: str, url: str, **more: Any) -> dict[str, Any]:
        import httpx2

        try:
            with httpx2.Client(
                timeout=SECONDS, follow_redirects=False, transport=self._transport,
                trust_env=not self.plan.local,
            ) as client:  # fmt: skip
                answer = ask(client, method, url, MOST_BYTES, SECONDS, **more)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderError(f"the provider cannot be reached: {type(error).__name__}") from None
        found = json_object(answer.content)
        if answer.status_code != 200:
            raise ProviderError(f"the provider answered {answer.status_code}")
        if found is None:
            raise ProviderError("the provider's answer is not a JSON object")
        return found


def role_of(plan: OpenId, claims: Mapping[str, Any]) -> str | None:
    """Return as what somebody enters, None if they may not; who may be both is a requester.

    An e-mail address counts only if the provider says that it has verified it; case only where it
    is of ASCII: by Unicode's, "\u017f" would be an "s".
    """
    email = claims.get("email") if claims.get("email_verified") is True else None
    mine = _lower(email) if isinstance(email, str) else None
    given = claims.get(plan.claim) if plan.claim else None
    values = {given} if isinstance(given, str) else set()
    if isinstance(given, list):
        values = {one for one in given if isinstance(one, str)}
    for role, addresses, subjects, allowed in (
        (DESK, plan.requesters, plan.requester_subjects, plan.requester_values),
        (REVIEWER, plan.reviewers, plan.reviewer_subjects, plan.reviewer_values),
    ):
        is_named = claims["sub"] in subjects or mine in {_lower(one.strip()) for one in addresses}
        if is_named or values & set(allowed):
            return role
    return None


def _lower(address: str) -> bytes:
    return address.encode("utf-8", "surrogatepass").lower()  # bytes: the letters of ASCII alone


def check_installed() -> None:
    """Raise `MissingExtraError` if authlib is not installed."""
    try:
        import authlib.oidc.core  # noqa: F401 - whether it is there
    except ImportError:
        raise MissingExtraError("authlib", "oidc", "logging in by OpenID Connect") from None
