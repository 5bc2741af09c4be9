"""The replica that answers: which it is, and whether it leads."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scheduler.serve.page.messages import cut
from scheduler.serve.port.answers import LEADING

_instance: Final = secrets.token_hex(8)
"""Different after each start: the page then starts again."""


@dataclass(frozen=True, slots=True)
class About:
    """The name of the replica."""

    version: str
    leads: Callable[[], bool]
    leader: Callable[[], str]
    """The leader's identity, as in the Lease; empty if there is none."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Those of an answer that the leader knows best."""
        return ((LEADING, "true" if self.leads() else "false"),)

    def document(self) -> dict[str, Any]:
        return {
            "instance": _instance,
            "version": self.version,
            "leads": self.leads(),
            "leader": cut(self.leader()),
        }
