"""Loadmaster with a watch that must make progress every few seconds, and that looks for it more often, too."""

import sys
from functools import partial
from typing import Any, Final

from scheduler.__main__ import main
from scheduler.assembly import cluster
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers import further_watches, kopf_settings, watch
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.watch import Watch

SECONDS: Final = 3.0
"""For whatever must make progress."""


class ShortDeadlines(Deadlines):
    def expect(self, name: str, seconds: float) -> None:
        """Whatever it takes otherwise."""
        super().expect(name, SECONDS)


if __name__ == "__main__":
    parts: Any = cluster
    parts.Deadlines = ShortDeadlines
    opening: Any
    for opening in (cluster, further_watches):
        # Nothing is sent to an idle watch for a minute, so it has to be opened again to show that it works.
        opening.Watch = partial(Watch, frozen_seconds=1.0)
    waiting: Any
    for waiting in (kopf_settings, watch):
        waiting.RETRIES = RetryPolicy(first=0.1, limit=0.5)
    sys.exit(main())
