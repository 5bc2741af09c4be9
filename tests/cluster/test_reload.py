"""The configuration changes while the scheduler works, on the real control plane, with the RBAC that is shipped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, define, install_rbac, message, metric, node_of, start, undefine
from tests.cluster.test_watched_resources import (
    BUDGETS,
    EXAMPLES,
    PROGRAM,
    a_budget,
)
from tests.controlplane import Client, Cluster, Component, a_pod, definitions, wait_until

NOTICED = 6.0
"""Seconds until a change is taken over: two looks, and some time to list what is new."""

RETRY = 5.0
"""Seconds after which what a permission is missing for is tried again, in the program here; else it takes 30."""

RETRIED = 45.0
"""Seconds until it is, or until new plugins are taken over, at most."""

SOON_RETRYING = f"""\
import runpy

from scheduler.assembly import reloading

reloading.RETRY_SECONDS = {RETRY}
runpy.run_path({str(PROGRAM)!r}, run_name="__main__")
"""


class Mounted:
    """A ConfigMap as the kubelet mounts it: a link to a directory, which is exchanged as a whole."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        (directory / "config.yaml").symlink_to(Path("..data") / "config.yaml")

    @property
    def path(self) -> Path:
        return self._directory / "config.yaml"

    def write(self, content: str) -> None:
        self._number += 1
        version = self._directory / f"..{self._number}"
        version.mkdir()
        (version / "config.yaml").write_text(content)
        link = self._directory / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self._directory / "..data")

    def profiles(self, *profiles: dict[str, Any], **fields: Any) -> None:
        header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        self.write(json.dumps({**header, "profiles": profiles, **fields}))


def a_profile(name: str, *plugins: str) -> dict[str, Any]:
    enabled = [{"name": plugin} for plugin in plugins]
    return {"schedulerName": name, "plugins": {"multiPoint": {"enabled": enabled}}}


@pytest.fixture(scope="module", autouse=True)
def rbac(cluster: Cluster) -> Iterator[None]:
    """What is shipped; the rule about budgets comes later."""
    install_rbac(cluster)
    define(cluster, definitions.BUDGET)
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", "reloaded-budgets", "--ignore-not-found")
    undefine(cluster, definitions.BUDGET)


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    made = Mounted(tmp_path)
    made.profiles(a_profile("loadmaster"))
    return made


@pytest.fixture
def loadmaster(cluster: Cluster, mounted: Mounted, namespace: str) -> Iterator[Component]:
    env = {"PYTHONPATH": str(EXAMPLES), "POD_NAMESPACE": namespace, "POD_NAME": "the-scheduler"}
    with start(cluster, f"--config={mounted.path}", program=("-c", SOON_RETRYING), env=env) as process:
        yield process


"""Longer than a change takes to be noticed."""


def reloads(loadmaster: Component, result: str) -> float:
    return metric(loadmaster.port, "loadmaster_config_reloads_total", result=result)


def until_taken_over(loadmaster: Component, count: int, seconds: float = NOTICED) -> None:
    wait_until(lambda: reloads(loadmaster, "success") >= count, seconds, "the configuration is taken over")


def until_bound(api: Client, pod: str, namespace: str) -> None:
    wait_until(lambda: bool(node_of(api.get("Pod", pod, namespace))), 10, f"{pod} is bound")


def test_a_profile_that_comes_takes_the_pods_that_waited_for_it(
    api: Client, namespace: str, make_nodes: MakeNodes, loadmaster: Component, mounted: Mounted
) -> None:
    make_nodes(1)
    api.create(a_pod("early", namespace, scheduler="batch"))

    mounted.profiles(a_profile("loadmaster"), a_profile("batch"))

    until_bound(api, "early", namespace)
    assert reloads(loadmaster, "success") == 1
    events = [
        each for each in api.list("events.k8s.io/v1/Event", namespace) if each["reason"] == "ConfigurationChanged"
    ]
    assert [each["regarding"]["name"] for each in events] == ["the-scheduler"]


def test_a_new_plugin_waits_for_its_permission_then_sees_its_objects_and_goes_again(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, loadmaster: Component, mounted: Mounted
) -> None:
    make_nodes(1, labels={"pool": "blue"})
    api.create(a_budget("a", "blue"), namespace)

    mounted.profiles(a_profile("loadmaster", "TeamBudget"))
    wait_until(lambda: reloads(loadmaster, "error") >= 1, NOTICED, "the plugin is refused")
    rule = "--verb=list,watch", "--resource=budgets.example.com"
    cluster.kubectl("create", "clusterrole", "reloaded-budgets", *rule)
    account = f"--serviceaccount={NAMESPACE}:{ACCOUNT}"
    cluster.kubectl("create", "clusterrolebinding", "reloaded-budgets", "--clusterrole=reloaded-budgets", account)
    until_taken_over(loadmaster, 1, RETRIED)
    api.create(a_pod("with", namespace, labels={"team": "a"}))
    api.create(a_pod("without", namespace, labels={"team": "b"}))
    until_bound(api, "with", namespace)
    wait_until(lambda: bool(message(api, "without", namespace)), 10, "the pod without a budget is refused")
    watched = metric(loadmaster.port, "loadmaster_watch_events_total", resource=BUDGETS)

    mounted.profiles(a_profile("loadmaster"))

    until_bound(api, "without", namespace)
    api.create(a_budget("c", "blue"), namespace)
    api.create(a_pod("last", namespace))
    until_bound(api, "last", namespace)
    assert metric(loadmaster.port, "loadmaster_watch_events_total", resource=BUDGETS) == watched
