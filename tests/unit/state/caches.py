"""A cache for tests, and pods to put into it."""

from scheduler.api.pods.pod import Pod
from scheduler.process.metrics import Metrics
from scheduler.state.cache import Cache
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, sample


class CacheUnderTest(Cache):
    """Two nodes, and a clock and metrics to look at."""

    def __init__(self, ttl: float = 0.0) -> None:
        self.clock = FakeClock()
        self.metrics = Metrics()
        super().__init__(self.metrics, self.clock, ttl)
        for name in ("n1", "n2"):
            self.set_node(a_node(name))

    def counted(self, metric: str, **labels: str) -> float:
        return sample(self.metrics, f"loadmaster_{metric}_total", **labels)

    def cpu(self) -> dict[str, int]:
        """Requested by node, in thousandths of a core."""
        self.check_invariants()
        return dict(zip(self.table.names(), self.table.requested("cpu").tolist(), strict=True))


def on(node: str, uid: str = "p", cpu: str = "1") -> Pod:
    return a_pod(uid, uid=uid, node_name=node, requests={"cpu": cpu})
