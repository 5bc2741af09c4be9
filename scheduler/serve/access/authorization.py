"""Authorizes requests: health is for everyone, for the rest the API server is asked, as in kube-scheduler.

    path that is always allowed, or a user of system:masters ──► allowed
    otherwise ──► SubjectAccessReview of the path and the HTTP method ──► allowed, forbidden, or no answer

Source: k8s.io/apiserver/pkg/server/options/authorization.go, plugin/pkg/authorizer/webhook at v0.36.3.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import msgspec

from scheduler.api.reviews import MASTERS_GROUP, AccessVerdict, User
from scheduler.framework.errors import ConfigError
from scheduler.serve.access.reviewed import Reviewed

_encoder = msgspec.json.Encoder(order="deterministic")


class AccessReviewer(Protocol):
    """Asks what a user may do. Implemented in scheduler.kube.services.reviews."""

    async def review_access(self, user: User, path: str, verb: str) -> AccessVerdict:
        """Raises ClusterError if there is no answer."""


class Authorization:
    """Decides who may see what."""

    def __init__(
        self,
        reviewer: AccessReviewer | None,
        always_allow: Sequence[str],
        allowed_seconds: float,
        refused_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`reviewer`: None if no cluster can be asked; no user is then allowed. Answers are kept for so many seconds.

        Raises ConfigError for a path with `*` elsewhere than at its end.
        """
        problems = [f"only trailing * allowed in {path!r}" for path in always_allow if "*" in path[:-1]]
        if problems:
            raise ConfigError([f"--authorization-always-allow-paths: {problem}" for problem in problems])
        paths = [path.removeprefix("/") for path in always_allow]
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._reviewer = reviewer
        self._allowed_seconds, self._refused_seconds = allowed_seconds, refused_seconds
        self._verdicts: Reviewed[AccessVerdict] = Reviewed(now)

    async def verdict(self, user: User, path: str, verb: str) -> AccessVerdict:
        """Return whether `user` may do `verb`, HTTP's method in lower case. Raises ClusterError without an answer."""
        if MASTERS_GROUP in user.groups or self._is_for_all(path.removeprefix("/")):
            return AccessVerdict(allowed=True)
        if self._reviewer is None:
            return AccessVerdict()
        key = _encoder.encode((user, path, verb))
        ask = partial(self._reviewer.review_access, user, path, verb)
        return await self._verdicts.answer(
            key, ask, lambda verdict: self._allowed_seconds if verdict.allowed else self._refused_seconds
        )

    def _is_for_all(self, path: str) -> bool:
        return path in self._paths or path.startswith(self._prefixes)
