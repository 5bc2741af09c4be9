"""TokenReviews and SubjectAccessReviews: the API server authenticates and authorizes our clients.

They have limits of their own, apart from bindings. What they cost is bounded before they come here: `scheduler.serve`.
"""

from typing import Final, TypeVar

import msgspec

from scheduler.api.decoding import Decoder
from scheduler.api.reviews import AccessVerdict, TokenVerdict, User
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import Client, NoReply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import RetryPolicy, repeated

MAX_IN_FLIGHT: Final = 4

REPETITIONS: Final = RetryPolicy(first=0.5, limit=2.0, tries=5)
"""As many as kube-scheduler makes; who waits gives up sooner."""

R = TypeVar("R")

AUTHENTICATION: Final = "authentication.k8s.io/v1"
AUTHORIZATION: Final = "authorization.k8s.io/v1"


class Reviews:
    """Asks the API server of `client`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tokens = Operation("POST", "tokenreviews", CallLimit(MAX_IN_FLIGHT), fenced=False)
        self._access = Operation("POST", "subjectaccessreviews", CallLimit(MAX_IN_FLIGHT), fenced=False)

    async def review_token(self, token: str, audience: str = "") -> TokenVerdict:
        """Ask whether a token is valid, for the API server or for another `audience`.

        Raises ClusterError if there is no answer; its text does not have the token.
        """
        spec = {"token": token, "audiences": [audience]} if audience else {"token": token}
        review = {"apiVersion": AUTHENTICATION, "kind": "TokenReview", "spec": spec}
        return (await self._create(self._tokens, f"/apis/{AUTHENTICATION}", review, _token_decoder)).status

    async def review_access(self, user: User, path: str, verb: str) -> AccessVerdict:
        """Raises ClusterError if there is no answer."""
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        review = {"apiVersion": AUTHORIZATION, "kind": "SubjectAccessReview", "spec": spec}
        return (await self._create(self._access, f"/apis/{AUTHORIZATION}", review, _access_decoder)).status

    async def _create(self, operation: Operation, group: str, review: object, decoder: Decoder[R]) -> R:
        path, body = f"{group}/{operation.resource}", msgspec.json.encode(review)
        outcome = await repeated(lambda: self._client.attempt(operation, path, body), REPETITIONS)
        if isinstance(outcome, NoReply) or not outcome.ok:
            raise ClusterError(f"{operation.resource}: {outcome.status or 'no answer'}: {outcome.message}")
        return outcome.read(decoder, "an answer to a review cannot be read")


class _TokenReview(msgspec.Struct):
    status: TokenVerdict


class _AccessReview(msgspec.Struct):
    status: AccessVerdict


_token_decoder: Decoder[_TokenReview] = Decoder(_TokenReview)
_access_decoder: Decoder[_AccessReview] = Decoder(_AccessReview)
