"""Two replicas of the shipped scheduler as processes, and which of them leads."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cluster import loadmaster
from tests.controlplane import ApiError, Client, Cluster, Component, wait_until

LEASE = "coordination.k8s.io/v1/Lease"
NAME = "loadmaster"
STATUS = f'leader_election_master_status{{name="{NAME}"}} 1.0'


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, as in `leaderElection`."""

    lease: float = 6.0
    renew: float = 4.0
    retry: float = 0.5

    @property
    def flags(self) -> Sequence[str]:
        return (
            "--leader-elect=true",
            f"--leader-elect-lease-duration={self.lease}s",
            f"--leader-elect-renew-deadline={self.renew}s",
            f"--leader-elect-retry-period={self.retry}s",
        )


DEFAULTS = Timing(15.0, 10.0, 2.0)
"""kube-scheduler's, and ours."""


class Replicas:
    """Two of them."""

    def __init__(self, api: Client, first: Component, second: Component) -> None:
        self._api = api
        self.both = (first, second)

    def leaders(self) -> list[Component]:
        """Those that say that they lead."""
        return [each for each in self.both if each.running and leads(each)]

    def leader(self, timeout: float = 60.0) -> Component:
        """Wait until one leads, and return it."""
        return wait_until(self.leaders, timeout, "a replica leads")[0]

    def other(self, one: Component) -> Component:
        first, second = self.both
        return second if one is first else first

    def spec(self) -> dict[str, Any]:
        """The Lease's; empty if there is none."""
        try:
            spec: dict[str, Any] = self._api.get(LEASE, NAME, loadmaster.NAMESPACE)["spec"]
        except ApiError:
            return {}
        return spec


def leads(replica: Component) -> bool:
    # Not parsed as a whole: that takes a tenth of a second, and who waits for a leader asks often.
    return STATUS in loadmaster.http_get(replica.port, "/metrics")[1]


@contextlib.contextmanager
def two_replicas(cluster: Cluster, api: Client, timing: Timing) -> Iterator[Replicas]:
    """Start both, and wait until one leads. Needs the shipped RBAC."""
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(loadmaster.start(cluster, *timing.flags, name=f"replica-{name}")) for name in "ab"
        )
        replicas = Replicas(api, first, second)
        replicas.leader(timing.lease + 30)
        yield replicas
