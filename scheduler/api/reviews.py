"""TokenReview and SubjectAccessReview: the API server's answers about a token and about a user's rights."""

from typing import Final

import msgspec

AUDIENCE: Final = "loadmaster"
"""The audience of tokens that are issued for this scheduler alone."""

PASSED_ON: Final = "X-Loadmaster-Authorization"
"""Like Authorization, which the API server's proxy keeps to itself. Only tokens made for us are taken from it."""


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user. Fields are named as in TokenReview's `status.user`."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


AUTHENTICATED_GROUP: Final = "system:authenticated"
UNAUTHENTICATED_GROUP: Final = "system:unauthenticated"
MASTERS_GROUP: Final = "system:masters"

ANONYMOUS: Final = User(username="system:anonymous", groups=(UNAUTHENTICATED_GROUP,))


class TokenVerdict(msgspec.Struct, frozen=True):
    """The status of a TokenReview."""

    authenticated: bool = False
    user: User = User()
    error: str = ""


class AccessVerdict(msgspec.Struct, frozen=True):
    """The status of a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
