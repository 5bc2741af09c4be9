"""docs/operations/only-scheduler.md: Loadmaster in the place of kube-scheduler, and back, by one Lease."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart.helm import CHART, Helm, HelmError
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, is_ready, node_of, serving
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, wait_until
from tests.controlplane.client import Object

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "only-scheduler.md"
LEASE: Final = "kube-scheduler"
PLACED_SECONDS: Final = 40.0
"""A second or two after a clean stop; a leader that released nothing is waited for 15 s."""


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    with ControlPlane() as controlplane:
        yield controlplane


@pytest.fixture(scope="module")
def api(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        client.create_many(a_node(f"node-{i}") for i in range(3))
        yield client


@pytest.fixture(scope="module")
def values() -> Any:
    """The values of the page."""
    (block,) = re.findall(r"(?ms)^```yaml\n(config:.*?)^```$", PAGE.read_text())
    return yaml.safe_load(block)


@pytest.fixture(scope="module")
def config(own: ControlPlane, values: Any) -> Path:
    """Installs what the chart makes of these values, without the Deployment; its configuration in a file."""
    documents = list(yaml.safe_load_all(Helm(own.directory / "helm").render(values)))
    for each in documents:
        if each["kind"] in ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
            own.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    (text,) = (each["data"]["config.yaml"] for each in documents if "config.yaml" in (each.get("data") or {}))
    path = own.directory / "only.yaml"
    path.write_text(text)
    return path


def loadmaster(own: ControlPlane, config: Path, values: Any) -> Component:
    """Loadmaster with the flags that the chart gives it."""
    (arguments,) = (
        each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in yaml.safe_load_all(Helm(own.directory / "helm").render(values))
        if each["kind"] == "Deployment"
    )
    lease = [each for each in arguments if each.startswith("--leader-elect-")]
    kubeconfig = own.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    def argv(port: int) -> list[str]:
        given = [f"--kubeconfig={kubeconfig}", f"--config={config}", *lease, *serving(port)]
        return [sys.executable, "-m", "scheduler", "run", *given]

    return own.spawn("loadmaster-only", argv, is_ready)


def install(own: ControlPlane, values: Any) -> None:
    """Ask the API server whether it would take the chart with these values. Raises HelmError."""
    helm = Helm(own.directory / "helm", own.kubeconfig())
    helm.run("install", "second", str(CHART), "--namespace=default", "--dry-run=server", values=values)


def holder(api: Client) -> str:
    lease: Object = api.get("coordination.k8s.io/v1/Lease", LEASE, NAMESPACE)
    return str(lease["spec"].get("holderIdentity") or "")


def place(api: Client, name: str) -> None:
    """Create a pod that names no scheduler, and wait until it has a node."""
    pod = a_pod(name)
    del pod["spec"]["schedulerName"]
    api.create(pod, "default")
    wait_until(lambda: node_of(api.get("Pod", name, "default")), PLACED_SECONDS, f"{name} is placed")


def test_loadmaster_takes_over_from_kube_scheduler_and_gives_back(
    own: ControlPlane, api: Client, config: Path, values: Any
) -> None:
    with own.start_kube_scheduler(leader_elect=True) as kube_scheduler:
        place(api, "by-kube-scheduler")
        theirs = holder(api)
        with loadmaster(own, config, values) as ours:
            place(api, "while-loadmaster-stands-by")
            assert holder(api) == theirs, "it stands by"
            install(own, values)
            with pytest.raises(HelmError, match="is held by"):
                install(own, {"config": {**values["config"], "profiles": [{"schedulerName": "another"}]}})

            kube_scheduler.send_signal(signal.SIGTERM)
            wait_until(lambda: not kube_scheduler.running, 30, "kube-scheduler has ended")
            place(api, "by-loadmaster")
            taken = holder(api)
            assert taken not in ("", theirs)

            kube_scheduler.start()  # it comes back, as an upgrade of kubeadm's would bring it
            place(api, "while-kube-scheduler-stands-by")
            assert holder(api) == taken, "it stands by"

            ours.stop()
            assert ours.exit_code == 0
        place(api, "by-kube-scheduler-again")
        assert holder(api) not in ("", taken)


def test_a_pod_that_waited_while_nobody_led_is_placed(
    own: ControlPlane, api: Client, config: Path, values: Any
) -> None:
    pod = a_pod("early", scheduler="default-scheduler")
    api.create(pod, "default")

    with loadmaster(own, config, values):
        wait_until(lambda: node_of(api.get("Pod", "early", "default")), PLACED_SECONDS, "it is placed")
