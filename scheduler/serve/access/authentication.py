"""Authenticates the caller by client certificate or bearer token, otherwise as anonymous, as in kube-scheduler.

Source: k8s.io/apiserver/pkg/authentication at v0.36.3 (authenticatorfactory, request/x509, request/bearertoken,
token/cache).
"""

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from scheduler.api.reviews import ANONYMOUS, AUDIENCE, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP, TokenVerdict, User
from scheduler.framework.errors import ClusterError
from scheduler.serve.access.reviewed import Reviewed

UID_OID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
"""Of a user's UID in a certificate: k8s.io/apimachinery/pkg/apis/asn1."""

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"

log = logging.getLogger(__name__)


class TokenReviewer(Protocol):
    """Asks about a token. Implemented in scheduler.kube.services.reviews."""

    async def review_token(self, token: str, audience: str = "") -> TokenVerdict:
        """Ask whether a token is valid, for the API server or for another `audience`.

        Raises ClusterError if there is no answer.
        """


class Unauthorized(Exception):
    """The credentials are not accepted. The text is for the log."""


class Authentication:
    """Finds out who asks."""

    def __init__(
        self, reviewer: TokenReviewer | None, cache_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`reviewer`: None if no cluster can be asked; tokens are then ignored. `cache_seconds`: for an answer."""
        self._reviewer = reviewer
        self._cache_seconds = cache_seconds
        self._secret = secrets.token_bytes(32)
        """Makes the cache's keys, so that no token is in memory for longer than its request."""
        self._verdicts: Reviewed[TokenVerdict] = Reviewed(now)

    async def user(self, certificate: bytes | None, authorization: str, passed_on: str = "") -> User:
        """Return the user of this certificate (DER, verified by TLS) or Authorization header; else ANONYMOUS.

        `passed_on`: what came through the API server's proxy instead. A token there must be meant for us alone: one
        that the API server takes as well does not belong in a header that proxies may log.

        Raises Unauthorized.
        """
        if certificate is not None:
            user = user_of(certificate, datetime.now(UTC))
            if user is not None:
                return _with_group(user)
        token, audience = bearer_token(authorization), ""
        if not token and passed_on:
            token, audience = bearer_token(passed_on), AUDIENCE
        if not token or self._reviewer is None:
            return ANONYMOUS
        verdict = await self._review(self._reviewer, token, audience)
        if not verdict.authenticated:
            raise Unauthorized(verdict.error or "invalid bearer token")
        return _with_group(verdict.user)

    async def _review(self, reviewer: TokenReviewer, token: str, audience: str) -> TokenVerdict:
        key = hmac.digest(self._secret, f"{audience} {token}".encode(), hashlib.sha256)
        ask = partial(reviewer.review_token, token, audience)
        try:
            # kube-scheduler keeps no errors either.
            return await self._verdicts.answer(key, ask, lambda verdict: 0.0 if verdict.error else self._cache_seconds)
        except ClusterError as error:
            raise Unauthorized(f"cannot ask about a token: {error}") from error


def bearer_token(authorization: str) -> str:
    """The token of an Authorization header, or an empty string."""
    parts = authorization.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def user_of(certificate: bytes, now: datetime) -> User | None:
    """The user that a certificate names: its common name, and its organizations as groups. None without a name.

    Raises Unauthorized if it has expired since the handshake or names its user in no clear way.
    """
    try:
        found = x509.load_der_x509_certificate(certificate)
        names = _texts(found.subject, NameOID.COMMON_NAME)
        groups, uids = _texts(found.subject, NameOID.ORGANIZATION_NAME), _texts(found.subject, UID_OID)
    except ValueError as error:
        raise Unauthorized(f"a client certificate cannot be read: {error}") from error
    if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
        raise Unauthorized("a client certificate has expired or is not yet valid")
    if not names or not names[-1]:
        return None
    if len(uids) > 1 or uids == [""]:
        raise Unauthorized("a client certificate has not one UID")
    digest = f"X509SHA256={hashlib.sha256(certificate).hexdigest()}"
    return User(username=names[-1], uid="".join(uids), groups=tuple(groups), extra={CREDENTIAL_ID: (digest,)})


def _texts(name: x509.Name, oid: ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in name.get_attributes_for_oid(oid)]


def _with_group(user: User) -> User:
    """Add the group of all who are known: pkg/authentication/group."""
    if user.username == ANONYMOUS.username or {AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP} & set(user.groups):
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED_GROUP))
