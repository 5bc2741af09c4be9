"""What the debugger finds different between the API server and us."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.errors import ClusterError
from scheduler.kube.informers.comparer import Comparer, Difference
from scheduler.kube.informers.listing import Lister
from scheduler.testing import pod_from_dict
from tests.unit.cycle.harness import PROFILE, Scheduler
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, node_dict, object_list, pod_dict

LIST_PODS = "GET /api/v1/pods"
LIST_NODES = "GET /api/v1/nodes"


def ours(name: str) -> dict[str, Any]:
    """A pod of our profile that waits."""
    return pod_dict(name, schedulerName=PROFILE)


def bound(name: str) -> dict[str, Any]:
    return pod_dict(name, schedulerName="other", nodeName="a")


class Setup:
    """A scheduler with the node `a`, and an API server that has it too."""

    def __init__(self, api: FakeApi, client: Any) -> None:
        self.api = api
        self.scheduler = Scheduler(nodes=("a",))
        self.lists()
        cache, queue = self.scheduler.cache, self.scheduler.queue
        lister = Lister(client, pause=lambda _: asyncio.sleep(0))
        self.comparer = Comparer(lister, cache, queue, {PROFILE}, settle=0.0)

    def lists(self, *pods: Any, nodes: tuple[str, ...] = ("a",)) -> None:
        """What the API server has from now on."""
        self.api.on(LIST_PODS, object_list(*pods, version=10))
        self.api.on(LIST_NODES, object_list(*map(node_dict, nodes), version=10))

    def knows(self, *pods: Any) -> None:
        """What the watch has reported."""
        for pod in pods:
            self.scheduler.handlers.pod_changed(pod_from_dict(pod))


@asynccontextmanager
async def a_setup(directory: Path) -> AsyncIterator[Setup]:
    api = FakeApi()
    async with fake_client(directory, api) as client:
        yield Setup(api, client)


async def test_equal_states_do_not_differ(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.lists(bound("web"), ours("next"))
        setup.knows(bound("web"), ours("next"))
        comparison, requests = await setup.comparer.compare(), len(setup.api.requests)

    assert not comparison
    assert (comparison.listed_nodes, comparison.listed_pods) == (1, 2)
    assert requests == 2, "no second look"


async def test_nodes_are_compared_by_name_and_pods_by_uid(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.lists(bound("new"), ours("next"), nodes=("b",))
        setup.knows(bound("web"), ours("waits"), ours("tried"))
        setup.scheduler.pop()
        comparison = await setup.comparer.compare()

    assert comparison.nodes == Difference({"b": "b"}, {"a": "a"})
    assert comparison.pods.missed == {"uid-new": "default/new", "uid-next": "default/next"}
    gone = ("web", "waits", "tried")
    assert comparison.pods.redundant == {f"uid-{name}": f"default/{name}" for name in gone}


async def test_a_node_that_only_pods_speak_of_is_redundant(tmp_path: Path) -> None:
    """As in kube-scheduler, whose cache has an entry for it."""
    elsewhere = pod_dict("web", nodeName="gone")

    async with a_setup(tmp_path) as setup:
        setup.lists(elsewhere)
        setup.knows(elsewhere)

        assert (await setup.comparer.compare()).nodes.redundant == {"gone": "gone"}


async def test_a_bound_pod_that_waits_in_our_queue_is_missed(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.lists(bound("web"))
        setup.knows(ours("web"))

        assert (await setup.comparer.compare()).pods.missed == {"uid-web": "default/web"}


async def test_an_assumed_pod_is_known_whether_the_api_server_says_bound_or_not(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.scheduler.cache.assume(pod_from_dict(ours("web")).bound_to("a"))
        found = []
        for state in (ours("web"), bound("web")):
            setup.lists(state)
            found.append(bool(await setup.comparer.compare()))

        assert found == [False, False]


async def test_waiting_pods_that_are_none_of_our_business_are_left_out(tmp_path: Path) -> None:
    deleting = ours("going")
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    async with a_setup(tmp_path) as setup:
        setup.lists(pod_dict("theirs", schedulerName="other"), deleting)

        assert not (await setup.comparer.compare())


async def test_what_the_watch_clears_meanwhile_is_only_late(tmp_path: Path) -> None:
    """The first list lacks `new` and still has `old`; the second is as the watch has it; `lost` differs in both."""
    first = object_list(bound("old"), bound("lost"), version=10)
    second = object_list(bound("new"), bound("lost"), version=20)

    async with a_setup(tmp_path) as setup:
        setup.api.on(LIST_PODS, first, second)
        setup.knows(bound("new"))

        pods = (await setup.comparer.compare()).pods
    assert pods.missed == {"uid-lost": "default/lost"}
    assert pods.redundant == {}


async def test_pages_are_read_to_the_end_and_finished_pods_left_out(tmp_path: Path) -> None:
    first = object_list(bound("a"), version=10, continue_="next/+=")
    last = object_list(bound("b"), version=10)

    async with a_setup(tmp_path) as setup:
        setup.api.on(LIST_PODS, first, last)
        setup.knows(bound("a"), bound("b"))
        comparison, requests = await setup.comparer.compare(), setup.api.seen(LIST_PODS)
    assert not comparison
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    assert [dict(request.query) for request in requests] == [
        {"limit": "500", "fieldSelector": selector},
        {"limit": "500", "fieldSelector": selector, "continue": "next/+="},
    ]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(403, {"message": "may not"}), id="refused"),
        pytest.param(Answer(200, {"items": 1}), id="no list"),
        pytest.param(LOST, id="no answer"),
    ],
)
async def test_an_api_server_in_trouble_is_a_cluster_error(tmp_path: Path, answer: Answer) -> None:
    async with a_setup(tmp_path) as setup:
        setup.api.on(LIST_PODS, answer)

        with pytest.raises(ClusterError):
            await setup.comparer.compare()


async def test_comparing_changes_nothing(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.lists(bound("new"), nodes=("b",))
        setup.knows(bound("old"), ours("next"))
        await setup.comparer.compare()
        scheduler = setup.scheduler
    assert scheduler.cache.sizes() == {"assumed_pods": 0, "nodes": 1, "pods": 1}
    assert set(scheduler.pods) == {"uid-old", "uid-next"}
    scheduler.check()
