"""Elastic quotas on a real API server, with the resource of scheduler-plugins and the rules that the chart adds."""

import json
import random
import secrets
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.elastic_quota_definition import DEFINITION, NAME
from tests.cluster.loadmaster import granted, metric, node_of, start, with_plugin
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object

API = "scheduling.x-k8s.io/v1alpha1"
KIND = f"{API}/ElasticQuota"
ROUND: Final = "example.com/round"
"""A resource that nobody asks for. Its minimum says in which round a quota was written last."""


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    """Give the shipped account the rules that the chart adds while a profile enables the plugin."""
    with granted(cluster, "CapacityScheduling", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=20s")
        yield
        cluster.kubectl("delete", "crd", NAME, "--ignore-not-found")


@pytest.fixture
def loadmaster(cluster: Cluster, tmp_path: Path) -> Iterator[Component]:
    with start(cluster, with_plugin(tmp_path, "CapacityScheduling")) as component:
        yield component


@pytest.fixture(autouse=True)
def quotas_that_are_gone(cluster: Cluster) -> Iterator[None]:
    """Delete all quotas after each test: those of a namespace that is being deleted would still count."""
    yield
    cluster.kubectl("delete", "elasticquotas", "--all", "--all-namespaces")


@pytest.fixture
def other(cluster: Cluster, api: Client) -> Iterator[str]:
    """Another namespace."""
    name = f"other-{secrets.token_hex(4)}"
    cluster.create_namespace(name)
    yield name
    api.delete("Namespace", name)


def set_quota(cluster: Cluster, namespace: str, minimum: str, maximum: str, name: str = "quota") -> None:
    amounts = {kind: {"cpu": cpu, "memory": "64Gi"} for kind, cpu in (("min", minimum), ("max", maximum))}
    metadata = {"name": name, "namespace": namespace}
    quota = {"apiVersion": API, "kind": "ElasticQuota", "metadata": metadata, "spec": amounts}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(quota))


def bound(api: Client, namespace: str) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in api.list("Pod", namespace) if node_of(pod))


def has(api: Client, namespace: str, count: int) -> bool:
    return len(bound(api, namespace)) == count


def message(api: Client, namespace: str, pod: str) -> str:
    """What the condition PodScheduled says."""
    conditions = api.get("Pod", pod, namespace).get("status", {}).get("conditions", [])
    return "".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def used(api: Client, namespace: str, name: str = "quota") -> Object:
    found: Object = api.get(KIND, name, namespace).get("status", {}).get("used", {})
    return found


def pods(names: range) -> list[Object]:
    return [a_pod(f"p{number}", cpu="1") for number in names]


def test_a_namespace_has_no_more_than_its_maximum_and_what_ends_makes_room(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="16")
    set_quota(cluster, namespace, "2", "2")
    api.create_many(pods(range(5)), namespace)
    wait_until(lambda: has(api, namespace, 2), 30, "two of them run")
    waiting = next(name for name in (f"p{number}" for number in range(5)) if name not in bound(api, namespace))
    expected = f"ElasticQuota {namespace} is more than Max"
    wait_until(lambda: expected in message(api, namespace, waiting), 30, "the others say why they wait")
    wait_until(lambda: used(api, namespace).get("cpu") == "2", 30, "the status says what is used")

    api.delete("Pod", bound(api, namespace)[0], namespace)

    wait_until(lambda: has(api, namespace, 2) and len(api.list("Pod", namespace)) == 4, 30, "the next one runs")
    wait_until(lambda: used(api, namespace).get("cpu") == "2", 30, "as much is used again")


def test_quotas_borrow_of_each_other_follow_their_objects_and_end_with_them(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, other: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="32")
    set_quota(cluster, namespace, "1", "10")
    set_quota(cluster, other, "2", "10")
    api.create_many(pods(range(6)), namespace)
    wait_until(lambda: has(api, namespace, 3), 30, "it has its own minimum and that of the other")
    wait_until(lambda: used(api, namespace).get("cpu") == "3", 30, "the status says so")
    wait_until(
        lambda: any("total ElasticQuota used is more than min" in message(api, namespace, f"p{n}") for n in range(6)),
        30,
        "the others say why they wait",
    )

    set_quota(cluster, other, "3", "10")
    wait_until(lambda: has(api, namespace, 4), 30, "a quota that rises makes room for one")
    cluster.kubectl("delete", "elasticquota", "quota", "-n", namespace)

    wait_until(lambda: has(api, namespace, 6), 30, "without a quota all of them run")


def test_of_two_quotas_the_second_has_an_event(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="16")
    set_quota(cluster, namespace, "1", "1", name="a")
    set_quota(cluster, namespace, "9", "9", name="b")
    api.create_many(pods(range(2)), namespace)

    def notes() -> list[str]:
        events = [each for each in api.list("events.k8s.io/v1/Event", namespace) if each["regarding"]["name"] == "b"]
        return [each["note"] for each in events]

    expected = f'the quota is not used: the namespace has an older one, "{namespace}/a", which counts alone'
    wait_until(lambda: expected in notes(), 30, "it says which one counts")
    wait_until(lambda: has(api, namespace, 1), 30, "that one holds")
    assert metric(loadmaster.port, "loadmaster_shares_unusable", source="scheduling.x-k8s.io/ElasticQuota") == 1


def test_a_quota_below_its_minimum_takes_back_what_another_has_borrowed_over_nodes(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, other: str, make_nodes: MakeNodes
) -> None:
    make_nodes(4, cpu="1500m")
    set_quota(cluster, namespace, "2", "4")
    set_quota(cluster, other, "2", "4")
    borrowers = [a_pod(f"b{number}", cpu="900m") for number in range(4)]
    api.create_many(borrowers, other)
    wait_until(lambda: has(api, other, 4), 30, "one has borrowed what the other leaves idle")
    first = [pod["metadata"]["uid"] for pod in api.list("Pod", other)]

    api.create_many([a_pod("mine", cpu="1400m")], namespace)

    wait_until(lambda: has(api, namespace, 1), 60, "the other has taken back what it needs")
    left = [pod["metadata"]["uid"] for pod in api.list("Pod", other)]
    assert set(left) < set(first)
    assert len(left) == 2, "no more than needed: two of 900m for 1400m, where 400m were free"


def test_quotas_that_change_under_load_hold_at_every_binding_and_leave_nobody_waiting_who_fits(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, other: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="64")
    chance = random.Random(25)
    load = Load(api, loadmaster, (namespace, other))

    for number in range(60):
        load.set_quotas({each: (low := chance.randint(0, 5), low + chance.randint(0, 5)) for each in load.namespaces})
        load.create({each: chance.randint(0, 4) for each in load.namespaces})
        load.delete(max(0, number - 3))
        load.follow()
        if number % 12 == 11:
            wait_until(load.is_settled, 30, "nobody waits who fits or could take back what is guaranteed")
            wait_until(load.statuses_agree, 30, "the statuses say what is used")
    load.set_quotas(dict.fromkeys(load.namespaces, (20, 40)))
    wait_until(lambda: sum(load.waiting().values()) == 0, 30, "all run that are left, now that all of them fit")
    wait_until(load.statuses_agree, 30, "the statuses say what is used")
    load.follow()

    assert load.bindings > 50
    assert load.refused > 5, "the quotas were in the way"
    assert load.excesses == []
    shares = dumped_shares(loadmaster)
    assert len(shares) == 3, "the quotas and their root"
    assert not [line for line in shares if "countedAgain" in line]


def dumped_shares(loadmaster: Component) -> list[str]:
    """What the debugger logs of shares."""
    before = len(loadmaster.log.read_text())

    def logged() -> str:
        return loadmaster.log.read_text()[before:]

    loadmaster.send_signal(signal.SIGUSR2)
    wait_until(lambda: "Cache comparer finished" in logged(), 20, "the debugger is done")
    return [line for line in logged().splitlines() if "Dump of share" in line]


class Load:
    """Pods of one core each that come and go in namespaces with quotas, and what the API server's history says of them.

    The scheduler has seen a quota before the next thing is done. So a pod was decided about by one that was in force
    at some time from its creation to its binding.
    """

    def __init__(self, api: Client, loadmaster: Component, namespaces: tuple[str, ...]) -> None:
        self.namespaces = namespaces
        self.bindings = 0
        self.refused = 0
        """Pods that were waiting when they were deleted."""
        self.excesses: list[str] = []
        """Bindings for which a maximum, or all minima together, had no space."""
        self._api = api
        self._loadmaster = loadmaster
        self._round = 0
        self._quotas: dict[str, list[tuple[int, int, int]]] = {each: [] for each in namespaces}
        """By namespace: the resource version since which minimum and maximum are these."""
        self._created: dict[str, int] = {}
        self._bound: dict[str, str] = {}
        """UID → namespace."""
        self._version = api.create(a_pod("begin", scheduler="nobody"), namespaces[0])["metadata"]["resourceVersion"]

    def set_quotas(self, amounts: dict[str, tuple[int, int]]) -> None:
        """Give each namespace a minimum and a maximum, and wait until the scheduler has them."""
        self._round += 1
        for namespace, (low, high) in amounts.items():
            least = {"cpu": str(low), "memory": "64Gi", ROUND: str(self._round)}
            spec = {"min": least, "max": {"cpu": str(high), "memory": "64Gi"}}
            if self._quotas[namespace]:
                written = self._api.patch(KIND, "quota", {"spec": spec}, namespace)
            else:
                meta = {"name": "quota", "namespace": namespace}
                written = self._api.create({"apiVersion": API, "kind": "ElasticQuota", "metadata": meta, "spec": spec})
            self._quotas[namespace].append((int(written["metadata"]["resourceVersion"]), low, high))
        rounds, name = self._round * len(amounts), "loadmaster_shares_guaranteed_excess"
        port = self._loadmaster.port
        wait_until(lambda: metric(port, name, resource=ROUND) == rounds, 30, "the scheduler has the quotas")

    def create(self, counts: dict[str, int]) -> None:
        for namespace, count in counts.items():
            labels = {"round": str(self._round)}
            made = [a_pod(f"p{self._round}-{number}", cpu="1", labels=labels) for number in range(count)]
            self._api.create_many(made, namespace)

    def delete(self, number: int) -> None:
        """Delete the pods of a round that are left."""
        for namespace in self.namespaces:
            self._api.delete_all("Pod", namespace, labels=f"round={number}")

    def follow(self) -> None:
        """Read what has happened until now."""
        end = self._api.create(a_pod(f"end-{secrets.token_hex(4)}", scheduler="nobody"), self.namespaces[0])
        for kind, pod in self._api.watch("Pod", since=self._version):
            meta = pod["metadata"]
            self._version = meta["resourceVersion"]
            if meta["uid"] == end["metadata"]["uid"]:
                return
            if meta["namespace"] in self.namespaces and pod["spec"]["schedulerName"] == "loadmaster":
                self._happened(kind, pod)
        raise AssertionError("the watch has ended")

    def waiting(self) -> Counter[str]:
        """How many pods of each namespace have no node."""
        return Counter(pod["metadata"]["namespace"] for pod in self._pods() if not node_of(pod))

    def is_settled(self) -> bool:
        """Whether every pod that waits would exceed a maximum, or borrow what is not there."""
        pods = self._pods()
        used = Counter(pod["metadata"]["namespace"] for pod in pods if node_of(pod))
        amounts = {each: quotas[-1][1:] for each, quotas in self._quotas.items()}
        is_full = used.total() >= sum(low for low, _ in amounts.values())
        return all(
            used[each] >= high or (is_full and used[each] >= low)
            for each, (low, high) in amounts.items()
            if any(pod["metadata"]["namespace"] == each and not node_of(pod) for pod in pods)
        )

    def statuses_agree(self) -> bool:
        run = Counter(pod["metadata"]["namespace"] for pod in self._pods() if node_of(pod))
        return all(used(self._api, each).get("cpu") == str(run[each]) for each in self.namespaces)

    def _pods(self) -> list[Object]:
        found = self._api.list("Pod", fields="spec.schedulerName=loadmaster")
        return [pod for pod in found if pod["metadata"]["namespace"] in self.namespaces]

    def _happened(self, kind: str, pod: Object) -> None:
        meta, version = pod["metadata"], int(pod["metadata"]["resourceVersion"])
        uid, namespace = meta["uid"], meta["namespace"]
        self._created.setdefault(uid, version)
        if kind == "DELETED":
            self.refused += not node_of(pod)
            self._bound.pop(uid, None)
        elif node_of(pod) and uid not in self._bound:
            self.bindings += 1
            self._bound[uid] = namespace
            mine = [each for each, its in self._bound.items() if its == namespace]
            limit = max(high for _, high in self._in_force(namespace, mine, version))
            if len(mine) > limit:
                self.excesses.append(f"{namespace}/{meta['name']} is pod {len(mine)}, of at most {limit}")
            total = sum(max(low for low, _ in self._in_force(each, self._bound, version)) for each in self.namespaces)
            if len(self._bound) > total:
                self.excesses.append(f"{namespace}/{meta['name']} is pod {len(self._bound)} of all, of at most {total}")

    def _in_force(self, namespace: str, pods: Iterable[str], until: int) -> list[tuple[int, int]]:
        """Return minima and maxima that were in force while the last of some pods was decided about."""
        since = max(self._created[uid] for uid in pods)
        quotas = self._quotas[namespace]
        ends = [*(version for version, _, _ in quotas[1:]), until]
        return [
            (low, high) for (begin, low, high), end in zip(quotas, ends, strict=True) if begin < until and end > since
        ]
