"""Upgrades of the chart on a real API server: from the release before, back again, and those that are refused."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.chart import CHART, Helm, HelmError
from tests.chart.earlier import release_before
from tests.chart.tables import releases
from tests.cluster.charted import run
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import is_ready, node_of
from tests.controlplane import Client, Cluster, a_pod, wait_until

BEFORE = release_before()


@pytest.fixture
def where(helm: Helm, namespace: str) -> Iterator[str]:
    """The flag for the test's namespace; its releases are uninstalled afterwards."""
    flag = f"--namespace={namespace}"
    yield flag
    for release in helm.run("list", flag, "--short", "--all").split():
        helm.run("uninstall", release, flag, "--wait")


@contextmanager
def scheduler_of_the_release(cluster: Cluster, api: Client, namespace: str, tmp_path: Path) -> Iterator[None]:
    """A scheduler with the account and the configuration of the release `lm`."""
    config = tmp_path / "config.yaml"
    config.write_text(api.get("ConfigMap", "lm", namespace)["data"]["config.yaml"])
    with cluster.spawn("loadmaster", run(cluster, namespace, "lm", config), is_ready):
        yield


def test_the_release_before_is_upgraded_and_rolled_back_and_schedules_at_each_step(
    helm: Helm,
    cluster: Cluster,
    api: Client,
    namespace: str,
    where: str,
    make_nodes: MakeNodes,
    tmp_path: Path,
) -> None:
    (node,) = make_nodes()

    def version() -> str:
        labels = api.get("apps/v1/Deployment", "lm", namespace)["metadata"]["labels"]
        return str(labels["app.kubernetes.io/version"])

    def place(pod: str) -> str:
        with scheduler_of_the_release(cluster, api, namespace, tmp_path):
            api.create(a_pod(pod), namespace)
            wait_until(lambda: node_of(api.get("Pod", pod, namespace)), 20, f"{pod} is bound")
        return node_of(api.get("Pod", pod, namespace))

    # What runs is always the program of today, which reads a kind more than the release before.
    rule = {"apiGroups": ["resource.k8s.io"], "resources": ["devicetaintrules"], "verbs": ["list", "watch"]}
    helm.run("install", "lm", str(BEFORE.chart), where, f"--set-json=rbac.extraRules={json.dumps([rule])}")
    before = version(), place("before")
    notes = helm.run("upgrade", "lm", str(CHART), where)
    after = version(), place("after")
    helm.run("rollback", "lm", where)
    rolled_back = version(), place("rolled-back")

    assert (before, after, rolled_back) == ((BEFORE.version, node), (chart_version(), node), (BEFORE.version, node))
    assert "Actions required by this upgrade" in notes
    assert all(action in notes for action in releases()[1]["actions"])


def chart_version() -> str:
    return str(yaml.safe_load((CHART / "Chart.yaml").read_text())["version"])


@pytest.fixture
def chart_of_later(tmp_path: Path) -> Path:
    """The chart as it may be two minor releases after 0.1.0."""
    later = tmp_path / "loadmaster"
    shutil.copytree(CHART, later)
    text = (later / "Chart.yaml").read_text()
    (later / "Chart.yaml").write_text(text.replace(f"ersion: {chart_version()}", "ersion: 0.3.0"))
    with (later / "files" / "releases.yaml").open("a") as file:
        file.write("- version: 0.3.0\n  actions: [Read the signs.]\n")
    return later


def test_an_upgrade_over_two_releases_is_refused_before_anything_changes(
    helm: Helm, where: str, chart_of_later: Path
) -> None:
    helm.run("install", "lm", str(BEFORE.chart), where)

    with pytest.raises(HelmError) as raised:
        helm.run("upgrade", "lm", str(chart_of_later), where)

    said = "Loadmaster 0.1.0 is installed, and an upgrade to 0.3.0 would leave out 0.2.0: upgrade to 0.2.0 first"
    assert said in str(raised.value)
    assert [each["revision"] for each in json.loads(helm.run("history", "lm", where, "--output=json"))] == [1]


def test_an_upgrade_release_by_release_is_taken(helm: Helm, where: str, chart_of_later: Path) -> None:
    helm.run("install", "lm", str(BEFORE.chart), where)
    helm.run("upgrade", "lm", str(CHART), where)

    notes = helm.run("upgrade", "lm", str(chart_of_later), where)

    assert "Read the signs." in notes
    assert releases()[1]["actions"][0] not in notes, "those are done"


def test_a_change_of_values_requires_nothing(helm: Helm, where: str) -> None:
    installed = helm.run("install", "lm", str(CHART), where)
    upgraded = helm.run("upgrade", "lm", str(CHART), where, values={"clusterSize": "small"})

    assert "Actions required" not in installed + upgraded


def hold(api: Client, namespace: str, holder: str, renewed: datetime) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "shared"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 300,
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
    api.create(lease, namespace)


SHARED = {"config": {"leaderElection": {"resourceName": "shared", "leaseDuration": "15s"}}}


def test_a_lease_that_another_scheduler_holds_is_refused(helm: Helm, api: Client, namespace: str, where: str) -> None:
    hold(api, namespace, "other-6d5f_1", datetime.now(UTC))

    with pytest.raises(HelmError) as raised:
        helm.run("install", "lm", str(CHART), where, values=SHARED)

    assert f"config.leaderElection: the Lease {namespace}/shared is held by other-6d5f_1" in str(raised.value)
    assert "set another resourceName" in str(raised.value)
    assert helm.run("list", where, "--short", "--all") == ""


@pytest.mark.parametrize(
    ("holder", "age"), [("other-6d5f_1", 600), ("", 0), ("lm-6d5f_1", 0)], ids=["expired", "released", "our own"]
)
def test_a_lease_that_nobody_else_holds_is_taken(
    helm: Helm, api: Client, namespace: str, where: str, holder: str, age: int
) -> None:
    hold(api, namespace, holder, datetime.now(UTC) - timedelta(seconds=age))

    assert "is installed" in helm.run("install", "lm", str(CHART), where, values=SHARED)


def test_an_upgrade_to_a_lease_that_another_scheduler_holds_is_refused_and_others_are_not(
    helm: Helm, api: Client, namespace: str, where: str
) -> None:
    helm.run("install", "lm", str(CHART), where, values=SHARED)
    hold(api, namespace, "its-own-by-another-name_1", datetime.now(UTC))

    helm.run("upgrade", "lm", str(CHART), where, values={**SHARED, "clusterSize": "small"})
    helm.run("upgrade", "lm", str(CHART), where, values={"clusterSize": "small"})
    with pytest.raises(HelmError, match="is held by its-own-by-another-name_1"):
        helm.run("upgrade", "lm", str(CHART), where, values=SHARED)


def test_all_that_is_wrong_is_told_at_once(helm: Helm, api: Client, namespace: str, where: str) -> None:
    hold(api, namespace, "other-6d5f_1", datetime.now(UTC))

    with pytest.raises(HelmError) as raised:
        helm.run("install", "lm", str(CHART), where, values={**SHARED, "extraArgs": ["--secure-port=1"]})

    assert "extraArgs: --secure-port=1 repeats" in str(raised.value)
    assert "is held by other-6d5f_1" in str(raised.value)


def test_a_profile_that_another_release_has_is_warned_of(helm: Helm, namespace: str, where: str) -> None:
    own = {"config": {"profiles": [{"schedulerName": namespace}]}}
    helm.run("install", "one", str(CHART), where, values=own)

    notes = helm.run("install", "two", str(CHART), where, values=own)
    other = helm.run("install", "three", str(CHART), where, values={"config": {"profiles": [{"schedulerName": "x"}]}})

    assert f"{namespace} is also a profile of the installation {namespace}/one" in notes
    assert "WARNING" not in other


def test_an_api_server_that_is_too_old_is_named(helm: Helm) -> None:
    with pytest.raises(HelmError, match=r"chart requires kubeVersion: >=1\.34\.0-0 .*v1\.33\.4"):
        helm.render({}, "--kube-version=1.33.4")

    assert helm.render({}, "--kube-version=1.34.0")
