"""The Events about the Lease that say who leads: `became leader`, `stopped leading`, as client-go's.

Best effort, one try: the API server may be away, which is why we stop leading.
"""

import time
from collections.abc import Callable

from scheduler.kube.http.client import Client
from scheduler.kube.writes.single_events import Regarding, SingleEvents


class LeaseEvents:
    """Sends them, through a client that is not fenced."""

    def __init__(
        self,
        client: Client,
        lease: tuple[str, str],
        identity: str,
        controller: str,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        """`lease`: namespace and name. `controller`: the first profile's name, as in kube-scheduler."""
        about = Regarding("coordination.k8s.io/v1", "Lease", *lease)
        self._events = SingleEvents(client, about, controller, identity, time_of_day)
        self._identity = identity

    async def send(self, what: str) -> None:
        """Report that we lead, or no longer lead. Raises nothing."""
        await self._events.send("Normal", "LeaderElection", "LeaderElection", f"{self._identity} {what}")
