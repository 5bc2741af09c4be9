"""The metrics beside those of the real kube-scheduler, after the same work on the same API server.

Whatever it shows is shown here, too: names, types, labels and buckets. What is not is in docs/differences.md, each with
its reason, and nothing else is.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.https import http_get
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, install_rbac, metrics_token, node_of, start
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, condition, wait_until
from tests.controlplane.flags import Settings
from tests.controlplane.versions import beside_older_servers

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
THEIRS, OURS = "default-scheduler", "loadmaster"
PATHS = ("/metrics", "/metrics/resources", "/metrics/slis")


@dataclass
class Family:
    """What a dashboard relies on."""

    type: str
    labels: set[str] = field(default_factory=set)
    """Of all its samples."""
    buckets: set[float] = field(default_factory=set)


@dataclass(frozen=True)
class Scrapes:
    """What both show, by path."""

    theirs: dict[str, str]
    ours: dict[str, str]


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapes]:
    # Of its own: its nodes and pods are all that there is, and kwok would end pods between two scrapes.
    with ControlPlane(Settings()) as cluster:
        install_rbac(cluster)
        token = metrics_token(cluster)
        account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        election = ("--leader-elect=true", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s")
        reviews = (f"--authentication-kubeconfig={account}", f"--authorization-kubeconfig={account}")
        with (
            cluster.client() as api,
            cluster.start_kube_scheduler(leader_elect=True) as theirs,
            start(cluster, *election, "--leader-elect-retry-period=500ms", *reviews) as ours,
        ):
            cluster.create_namespace("work")
            api.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "high"},
                    "value": 1000,
                }
            )
            for name in (THEIRS, OURS):
                work(api, name)
            yield Scrapes(scraped(theirs, token), scraped(ours, token))


def work(api: Client, scheduler: str) -> None:
    """Pods that fit, one that does not, one that takes the place of another, one that goes, one on hold."""
    zone = {"pool": scheduler}
    node = a_node(scheduler, cpu="2", labels=zone)
    api.create(node)

    def create(name: str, cpu: str, priority: str = "", *, gated: bool = False) -> None:
        pod = a_pod(f"{scheduler}-{name}", cpu=cpu, scheduler=scheduler)
        pod["spec"]["nodeSelector"] = zone
        pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "100", "memory": "1.5Gi"}
        if priority:
            pod["spec"]["priorityClassName"] = priority
        if gated:
            pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        api.create(pod, "work")

    def is_bound(name: str) -> bool:
        return bool(node_of(api.get("Pod", f"{scheduler}-{name}", "work")))

    def is_refused(name: str) -> bool:
        return condition(api.get("Pod", f"{scheduler}-{name}", "work"), "PodScheduled") is not None

    create("first", "900m")
    create("second", "900m")
    wait_until(lambda: is_bound("first") and is_bound("second"), 30, f"{scheduler} binds")
    create("large", "64")
    create("gated", "1", gated=True)
    wait_until(lambda: is_refused("large") and is_refused("gated"), 10, f"{scheduler} refuses")
    for number in range(30):  # a tenth of the events is timed here
        api.patch("Node", scheduler, {"metadata": {"labels": {"turn": str(number)}}})
    create("urgent", "900m", "high")
    wait_until(lambda: is_bound("urgent"), 30, f"{scheduler} preempts")


def scraped(process: Component, token: str) -> dict[str, str]:
    for path in ("/healthz", "/livez", "/readyz"):
        assert http_get(process.port, path)[0] == 200
    answers = {path: http_get(process.port, path, token=token) for path in PATHS}
    assert {path: status for path, (status, _) in answers.items()} == dict.fromkeys(PATHS, 200)
    return {path: text for path, (_, text) in answers.items()}


def families(text: str) -> dict[str, Family]:
    found: dict[str, Family] = {}
    for family in text_string_to_metric_families(text):
        known = found[family.name] = Family(family.type)
        for sample in family.samples:
            known.labels |= sample.labels.keys() - {"le"}
            if sample.name.endswith("_bucket"):
                known.buckets.add(float(sample.labels["le"]))
    return found


def left_out(*, always: bool = False) -> list[str]:
    """The names, with `*` for any characters, in the tables of docs/differences.md; `always`: only the first."""
    (section,) = re.findall(r"^## Metrics that are not there\n(.*?)(?=^## |\Z)", DIFFERENCES.read_text(), re.M | re.S)
    text = section.partition("\nkube-scheduler shows these only")[0] if always else section
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    return [name.removesuffix("_total") for name in names]  # as the parser has them


def is_left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in left_out())


def test_what_kube_scheduler_shows_is_shown_with_its_type_labels_and_buckets(scrapes: Scrapes) -> None:
    theirs, ours = (families("".join(each.values())) for each in (scrapes.theirs, scrapes.ours))

    problems = [problem for name, family in theirs.items() for problem in differences(name, family, ours.get(name))]

    assert problems == []
    assert len(theirs) > 100, "it shows a lot"


def differences(name: str, theirs: Family, ours: Family | None) -> Iterator[str]:
    """In words; none for what is left out. What they have without labels has counted nothing yet, and says nothing."""
    if is_left_out(name):
        return
    if ours is None:
        yield f"{name} is missing"
        return
    if ours.type != theirs.type:
        yield f"{name} is a {ours.type}, theirs is a {theirs.type}"
    if theirs.labels and ours.labels != theirs.labels:
        yield f"{name} has the labels {sorted(ours.labels)}, theirs {sorted(theirs.labels)}"
    if theirs.buckets and ours.buckets != theirs.buckets:
        yield f"{name} has the buckets {sorted(ours.buckets)}, theirs {sorted(theirs.buckets)}"


def test_what_is_said_to_be_left_out_is(scrapes: Scrapes) -> None:
    theirs, ours = (families("".join(each.values())) for each in (scrapes.theirs, scrapes.ours))
    missing = theirs.keys() - ours.keys()

    needless = [pattern for pattern in left_out(always=True) if not any(fnmatchcase(name, pattern) for name in missing)]

    assert needless == []


def test_each_page_shows_what_kube_schedulers_page_does(scrapes: Scrapes) -> None:
    for path in ("/metrics/resources", "/metrics/slis"):
        theirs, ours = families(scrapes.theirs[path]), families(scrapes.ours[path])

        assert theirs.keys() <= ours.keys(), path


def samples(text: str, prefix: str = "") -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Name and labels → value, of the metrics whose names begin like this."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(prefix)
    }


def test_the_feature_gates_are_the_same_to_the_last_sample(scrapes: Scrapes) -> None:
    theirs, ours = (samples(each["/metrics"], "kubernetes_feature_enabled") for each in (scrapes.theirs, scrapes.ours))
    flags = " ".join(beside_older_servers(os.environ))

    assert [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)] == [
        name for name in ours if f"{dict(name[1])['name']}=" in flags
    ]
    assert len(ours) > 200


def test_what_pods_ask_for_and_may_use_is_the_same_to_the_last_sample(scrapes: Scrapes) -> None:
    theirs, ours = samples(scrapes.theirs["/metrics/resources"]), samples(scrapes.ours["/metrics/resources"])

    assert ours == theirs
    assert len(ours) > 20, "of four pods of each scheduler"
