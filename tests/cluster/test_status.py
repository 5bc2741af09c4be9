"""Status patches on a real API server, under the RBAC that is shipped."""

import asyncio

from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.api.wording.text import to_json
from scheduler.kube.http.client import Client as SchedulersClient
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.writes.status import Condition, PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE
from tests.controlplane import Client, Cluster, a_pod, condition

NO_ROOM = Condition("False", "Unschedulable", "no room")


def tell(cluster: Cluster, pod: Pod) -> None:
    """Tell a pod, as it was seen once, that there is no room for it."""

    async def send() -> None:
        kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        async with SchedulersClient(await load_credentials(str(kubeconfig)), Metrics()) as client:
            tasks = Tasks(Metrics())
            statuses = PodStatuses(client, tasks)
            statuses.set(pod, NO_ROOM)
            while statuses.busy:  # noqa: ASYNC110  the API server is another process
                await asyncio.sleep(0.01)
            await statuses.close()
            await tasks.close()

    asyncio.run(asyncio.wait_for(send(), 30))


def test_a_patch_that_arrives_after_the_binding_changes_nothing(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1)
    waiting = decode_pod(to_json(api.create(a_pod("web", scheduler="nobody"), namespace)))
    api.bind("web", node, namespace)

    tell(cluster, waiting)

    told = condition(api.get("Pod", "web", namespace), "PodScheduled")
    assert told is not None
    assert told["status"] == "True"


def test_a_pod_that_somebody_else_changed_is_told_all_the_same(cluster: Cluster, api: Client, namespace: str) -> None:
    waiting = decode_pod(to_json(api.create(a_pod("web", scheduler="nobody"), namespace)))
    api.patch("Pod", "web", {"metadata": {"annotations": {"changed": "yes"}}}, namespace)

    tell(cluster, waiting)

    told = condition(api.get("Pod", "web", namespace), "PodScheduled")
    assert told is not None
    assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", "no room")
