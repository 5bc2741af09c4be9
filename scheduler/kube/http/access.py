"""Whether the API server accepts us, and we it: the check behind `/livez` that no outage excuses.

    (accepted) ──401, or a certificate that cannot be verified──► REFUSED ──the same, REFUSED_SECONDS later──► failed
        ▲                                                            │                                          │
        └──────────────────────── any other answer ──────────────────┴──────────────────────────────────────────┘

Credentials are read again all the time, so a refusal that lasts needs an operator, or a restart. An outcome that says
nothing about our access, such as no connection, changes nothing.
"""

import logging
import ssl
import time
from collections.abc import Callable
from typing import Final

from scheduler.framework.errors import ConfigError

REFUSED_SECONDS: Final = 180.0
"""As long as a watch may be without progress. Tokens and authorities are read again within a minute."""

log = logging.getLogger(__name__)


class Access:
    """The outcomes of one client's calls."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.refused_since: float | None = None
        self._failed = False

    def accepted(self) -> None:
        """A call was answered, whatever it was."""
        if self._failed:
            log.info("The API server accepts us again")
        self.refused_since = None
        self._failed = False

    def refused(self, reason: str) -> None:
        """The API server refused us, or showed a certificate that is not that of our authority."""
        now = self._now()
        if self.refused_since is None:
            self.refused_since = now
        elif not self._failed and now - self.refused_since >= REFUSED_SECONDS:
            self._failed = True
            fields = {"seconds": round(now - self.refused_since), "err": reason}
            log.error("Every call is refused: /livez fails", extra=fields)

    def is_granted(self) -> bool:
        """Return whether calls have not been refused for long, without any that was not."""
        return not self._failed


def is_ours(error: BaseException | None) -> bool:
    """Return whether a call failed because of our own setup."""
    if error is None:
        return False
    return isinstance(error, ssl.SSLCertVerificationError | ConfigError) or is_ours(error.__cause__)
