"""Extenders, for Loadmaster and for the real kube-scheduler: the same questions and verdicts; and under faults."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.load import MemoryMeter
from tests.bench import usage
from tests.cluster.conftest import MakeNodes
from tests.cluster.extender_server import ExtenderServer, Question, Raw, Script, Slow, Stream, agree
from tests.cluster.loadmaster import install_rbac, metric, node_of, prioritised, start
from tests.controlplane import Client, Cluster, Component, ControlPlane, a_pod, condition, wait_until
from tests.controlplane.client import Object

OURS, THEIRS = "loadmaster", "peer"
GPU, FPGA, NIC, BOUND, LATE = (f"extender.example.com/{name}" for name in ("gpu", "fpga", "nic", "bound", "late"))
RESOURCES = dict.fromkeys((GPU, FPGA, NIC, BOUND, LATE), "100")
HIGH = "extender-high"
NUMBERS = itertools.count()

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
profiles: [{{schedulerName: {name}}}]
extenders:
- urlPrefix: {url}/names
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 5
  nodeCacheCapable: true
  httpTimeout: 1s
  managedResources: [{{name: {gpu}}}]
- urlPrefix: {url}/whole
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 5
  httpTimeout: 1s
  managedResources: [{{name: {fpga}}}]
- urlPrefix: {url}/ignorable
  filterVerb: filter
  preemptVerb: preempt
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 1s
  managedResources: [{{name: {nic}, ignoredByScheduler: true}}]
- urlPrefix: {url}/binder
  bindVerb: bind
  httpTimeout: 2s
  managedResources: [{{name: {bound}}}]
- urlPrefix: {url}/late
  filterVerb: filter
  nodeCacheCapable: true
  httpTimeout: 30s
  managedResources: [{{name: {late}}}]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ExtenderServer]:
    with ExtenderServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _silence(server: ExtenderServer) -> None:
    server.clear()


def config(directory: Path, server: ExtenderServer, name: str) -> Path:
    names = {"gpu": GPU, "fpga": FPGA, "nic": NIC, "bound": BOUND, "late": LATE}
    path = directory / f"{name}.yaml"
    path.write_text(CONFIG.format(name=name, url=server.url, **names))
    return path


@pytest.fixture(scope="module")
def loadmaster(
    cluster: Cluster, server: ExtenderServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    install_rbac(cluster)
    with start(cluster, f"--config={config(tmp_path_factory.mktemp('ours'), server, OURS)}") as process:
        yield process


@pytest.fixture(scope="module")
def both(
    loadmaster: Component, cluster: ControlPlane, server: ExtenderServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    """Kube-scheduler, too, with the same extenders."""
    with cluster.start_kube_scheduler(config(tmp_path_factory.mktemp("theirs"), server, THEIRS)) as process:
        yield process


@pytest.fixture(scope="module", autouse=True)
def _priority(cluster: Cluster) -> Iterator[None]:
    with prioritised(cluster, {HIGH: 1000}):
        yield


def verdict(api: Client, name: str, namespace: str) -> tuple[str, str, str] | None:
    """The node of a pod, or reason and message of why it has none; None as long as nothing is said."""
    pod = api.get("Pod", name, namespace)
    if node_of(pod):
        return node_of(pod), "", ""
    said = condition(pod, "PodScheduled")
    return ("", said["reason"], said["message"]) if said is not None else None


def judge(api: Client, namespace: str, scheduler: str, resource: str, **wishes: Any) -> tuple[str, str, str]:
    """What a scheduler makes of a pod that asks for a resource; the pod goes again."""
    name = f"web-{next(NUMBERS)}"  # another each time: kwok may delete one of that name once more
    api.create(a_pod(name, cpu="1", resources={resource: "1"}, scheduler=scheduler, **wishes), namespace)
    found = wait_until(lambda: verdict(api, name, namespace), 15, f"{scheduler} says something")
    api.delete("Pod", name, namespace)
    wait_until(lambda: not api.list("Pod", namespace, fields=f"metadata.name={name}"), 10, "the pod is gone")
    assert found is not None
    return found


def last(nodes: list[str]) -> Script:
    """Only the last of these nodes will do."""
    return lambda question: {"NodeNames": [name for name in question["NodeNames"] if name == nodes[-1]]}


def first_whole(nodes: list[str]) -> Script:
    def answer(question: Question) -> Any:
        items = [node for node in question["Nodes"]["items"] if node["metadata"]["name"] == nodes[0]]
        return {"Nodes": {"metadata": {}, "items": items}}

    return answer


SCRIPTS: dict[str, tuple[str, dict[str, Callable[[list[str]], Script]]]] = {
    "one of the nodes": (GPU, {"names/filter": last}),
    "whole nodes": (FPGA, {"whole/filter": first_whole}),
    "no node, with reasons": (
        GPU,
        {
            "names/filter": lambda nodes: (
                lambda _: {
                    "NodeNames": [],
                    "FailedNodes": {nodes[0]: "too hot", nodes[1]: "too hot"},
                    "FailedAndUnresolvableNodes": {nodes[2]: "too old", nodes[0]: "too far"},
                }
            )
        },
    ),
    "no node, without a word": (GPU, {"names/filter": lambda nodes: lambda _: {"NodeNames": []}}),
    "nothing at all": (GPU, {"names/filter": lambda nodes: lambda _: {}}),
    "scores decide": (
        GPU,
        {"names/prioritize": lambda nodes: lambda _: [{"Host": nodes[2], "Score": 10}, {"Host": "mars", "Score": 99}]},
    ),
    "scores are no duty": (
        GPU,
        {"names/filter": last, "names/prioritize": lambda nodes: lambda _: Raw(b"?")},
    ),
    "an error": (GPU, {"names/filter": lambda nodes: lambda _: {"Error": "out of order"}}),
    "HTTP 500": (GPU, {"names/filter": lambda nodes: lambda _: Raw(b"{}", status=500)}),
    "HTTP 301": (GPU, {"names/filter": lambda nodes: lambda _: Raw(b"", status=304)}),
    "an unknown node": (GPU, {"names/filter": lambda nodes: lambda _: {"NodeNames": [nodes[0], "mars"]}}),
    "silence": (GPU, {"names/filter": lambda nodes: lambda _: Slow(3)}),
    "an ignorable one that fails": (NIC, {"ignorable/filter": lambda nodes: lambda _: Raw(status=500)}),
    "an ignorable one that refuses": (
        NIC,
        {"ignorable/filter": lambda nodes: lambda _: {"FailedNodes": dict.fromkeys(nodes, "no")}},
    ),
    "a binding that is refused": (BOUND, {"binder/bind": lambda nodes: lambda _: {"Error": "not mine"}}),
    "a binding that fails": (BOUND, {"binder/bind": lambda nodes: lambda _: Raw(status=500)}),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_both_schedulers_say_the_same(
    both: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer, case: str
) -> None:
    nodes = make_nodes(3, cpu="4", resources=RESOURCES)
    resource, scripts = SCRIPTS[case]
    server.script.update({path: script(nodes) for path, script in scripts.items()})

    verdicts = {}
    questions = {}
    for name in (THEIRS, OURS):
        server.asked.clear()
        verdicts[name] = judge(api, namespace, name, resource)
        questions[name] = [(path, shape(question)) for path, question in server.asked]

    if not is_tie(case):
        assert verdicts[OURS] == verdicts[THEIRS]
    ours, theirs = (first_of_each(questions[name]) for name in (OURS, THEIRS))
    assert ours == theirs


def is_tie(case: str) -> bool:
    """Whether any node will do: kube-scheduler draws lots."""
    return case == "an ignorable one that fails"


def first_of_each(questions: list[tuple[str, Any]]) -> dict[str, Any]:
    """What was asked first at each verb; later attempts may have begun before the pod was gone."""
    found: dict[str, Any] = {}
    for path, question in questions:
        found.setdefault(path, question)
    return found


def shape(question: Question) -> Any:
    """A question without what differs between two pods of the same kind."""
    shown = dict(question)
    if shown.get("Pod"):
        pod = dict(shown["Pod"])
        assert "managedFields" not in pod["metadata"]
        pod["metadata"] = sorted(set(pod["metadata"]) - {"generation"})
        pod["spec"] = {key: value for key, value in pod["spec"].items() if key not in ("schedulerName", "volumes")}
        for container in pod["spec"]["containers"]:
            container.pop("volumeMounts", None)
        pod["status"] = {key: value for key, value in pod["status"].items() if key not in ("conditions",)}
        shown["Pod"] = pod
    if shown.get("NodeNames"):
        shown["NodeNames"] = sorted(shown["NodeNames"])
    if shown.get("Nodes"):
        items = sorted(shown["Nodes"]["items"], key=lambda node: str(node["metadata"]["name"]))
        shown["Nodes"] = {**shown["Nodes"], "items": [shape_of_node(item) for item in items]}
    for key in ("PodName", "PodUID", "Node"):
        shown.pop(key, None)
    return shown


def shape_of_node(node: Object) -> Object:
    """A node without what its heartbeats change."""
    metadata = {
        key: value for key, value in node["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    assert "managedFields" in node["metadata"]
    status = {key: value for key, value in node["status"].items() if key != "conditions"}
    return {**node, "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("resource", "name"), [pytest.param(GPU, "names", id="by UID"), pytest.param(FPGA, "whole", id="whole victims")]
)
def test_both_ask_the_same_about_victims_and_evict_those_that_are_left(
    both: Component,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    server: ExtenderServer,
    resource: str,
    name: str,
) -> None:
    nodes = make_nodes(2, cpu="2", resources=RESOURCES)
    asked, evicted = {}, {}
    for scheduler in (THEIRS, OURS):
        victims = {}
        for number, node in enumerate(nodes):
            low = a_pod(f"low{number}", cpu="2", scheduler=scheduler, nodeName=node)
            victims[node] = api.create(low, namespace)["metadata"]["uid"]
        wait_until(lambda: len(api.list("Pod", namespace)) == 2, 10, "they run")
        time.sleep(0.5)  # both have to know them
        server.asked.clear()
        server.script[f"{name}/preempt"] = choosing(nodes[1], victims[nodes[1]])
        high = a_pod("high", cpu="2", scheduler=scheduler, resources={resource: "1"}, priorityClassName=HIGH)
        api.create(high, namespace)
        wait_until(lambda: node_of(api.get("Pod", "high", namespace)), 20, "it is placed")
        evicted[scheduler] = nodes.index(node_of(api.get("Pod", "high", namespace)))
        (question, *_) = server.questions(f"{name}/preempt")
        asked[scheduler] = victims_of(question, nodes)
        api.delete_all("Pod", namespace)
        wait_until(lambda: not api.list("Pod", namespace), 10, "all are gone")

    assert asked[OURS] == asked[THEIRS]
    assert evicted == {OURS: 1, THEIRS: 1}


def choosing(node: str, uid: str) -> Script:
    """Of all candidates, this one."""
    return lambda _: {"NodeNameToMetaVictims": {node: {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}}


def victims_of(question: Question, nodes: list[str]) -> Any:
    whole, meta = question["NodeNameToVictims"], question["NodeNameToMetaVictims"]
    if meta is not None:
        return whole, {nodes.index(node): (len(each["Pods"]), set(each)) for node, each in meta.items()}
    return meta, {
        nodes.index(node): ([sorted(pod) for pod in each["Pods"]], [pod["metadata"]["name"] for pod in each["Pods"]])
        for node, each in whole.items()
    }


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="and says so"),
        pytest.param(Raw(b"{", length=100), id="its answer is lost: a read settles it"),
    ],
)
def test_an_extender_binds_at_the_api_server(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer, answer: Any
) -> None:
    nodes = make_nodes(1, resources=RESOURCES)

    def bind(question: Question) -> Any:
        api.bind(question["PodName"], question["Node"], question["PodNamespace"])
        return answer

    server.script["binder/bind"] = bind

    assert judge(api, namespace, OURS, BOUND) == (nodes[0], "", "")
    (question,) = server.questions("binder/bind")
    assert set(question) == {"PodName", "PodNamespace", "PodUID", "Node"}


def test_an_ignored_resource_is_the_extenders_own(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer
) -> None:
    (node,) = make_nodes(1)  # it has none of it

    assert judge(api, namespace, OURS, NIC) == (node, "", "")


def _placed(api: Client, namespace: str) -> int:
    return sum(bool(node_of(pod)) for pod in api.list("Pod", namespace))


class ByteByByte:
    """Begins anew for each request: several are answered at once."""

    def __iter__(self) -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b" "


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "a hundred megabytes": (
        lambda: Raw(b'{"Error":"' + b"x" * (100 << 20) + b'"}'),
        "the answer has more than ",
    ),
    "an error of fifty megabytes": (
        lambda: Raw(b"x" * (50 << 20), status=500),
        "failed filter with extender at URL ",
    ),
    "no end": (
        lambda: Stream(itertools.repeat(b"x" * 65_536)),
        "the answer has more than ",
    ),
    "no end, byte by byte": (
        lambda: Stream(ByteByByte()),
        "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
    ),
    "as deep as it can be": (
        lambda: Raw(b'{"NodeNames":' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}"),
        "nodenames: Expected `str | null`, got `array`",
    ),
    "a hundred thousand unknown nodes": (
        lambda: {"NodeNames": [f"mars-{number}" for number in range(100_000)]},
        "extender ",
    ),
    "three megabytes of error": (
        lambda: {"Error": "x" * (3 << 20)},
        "x" * 1_000,
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_answer_costs_that_pod(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer, case: str
) -> None:
    make_nodes(1, resources=RESOURCES)
    answer, expected = HOSTILE[case]
    hostile = answer()
    server.script["names/filter"] = lambda _: hostile
    before = usage.resident_memory(loadmaster.pid)

    with MemoryMeter(loadmaster.pid) as memory:
        api.create_many([a_pod(f"hostile-{n}", resources={GPU: "1"}) for n in range(5)], namespace)
        api.create(a_pod("plain"), namespace)
        wait_until(lambda: node_of(api.get("Pod", "plain", namespace)), 5, "a plain pod is placed beside it")
        said = wait_until(lambda: verdict(api, "hostile-4", namespace), 15, "what becomes of the pod")

    assert said is not None
    node, reason, message = said
    assert (node, reason) == ("", "SchedulerError")
    assert message.startswith(expected)
    assert memory.peak - before < 80 << 20
    server.clear()
    assert judge(api, namespace, OURS, GPU)[0], "once it answers again"


def test_huge_pods_that_are_shown_to_an_extender_cost_themselves(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer
) -> None:
    (node,) = make_nodes(1, resources=RESOURCES)
    server.script["late/filter"] = lambda question: Slow(25, agree(question))
    huge = [a_pod(f"huge-{n}", resources={LATE: "1"}) for n in range(40)]
    for pod in huge:
        pod["metadata"]["annotations"] = {"note": "x" * (255 << 10)}
    before = usage.resident_memory(loadmaster.pid)

    with MemoryMeter(loadmaster.pid) as memory:
        api.create_many(huge, namespace)
        wait_until(lambda: len(server.questions("late/filter")) == 16, 10, "as many as there is room for are shown")
        api.create(a_pod("plain"), namespace)
        wait_until(lambda: node_of(api.get("Pod", "plain", namespace)) == node, 5, "a plain pod is placed beside them")
        server.script.clear()
        server.release()
        wait_until(lambda: _placed(api, namespace) == 41, 20, "and they in the end")

    assert memory.peak - before < 80 << 20


def test_metrics_tell_what_extenders_do(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, server: ExtenderServer
) -> None:
    make_nodes(1, resources=RESOURCES)
    server.script["names/filter"] = lambda _: {"NodeNames": []}
    api.create(a_pod("web", resources={GPU: "1"}), namespace)
    wait_until(lambda: verdict(api, "web", namespace), 10, "it is refused")

    calls = {"extender": f"{server.url}/names", "verb": "filter", "result": "ok"}
    assert metric(loadmaster.port, "loadmaster_extender_calls_total", **calls) >= 1
    # A pod that is tried once more counts again when it waits again.
    refused = partial(metric, loadmaster.port, "scheduler_unschedulable_pods", plugin="Extender", profile=OURS)
    wait_until(lambda: refused() == 1, 10, "it counts as refused by an extender")
    assert metric(loadmaster.port, "loadmaster_extender_call_duration_seconds_count") >= 1
