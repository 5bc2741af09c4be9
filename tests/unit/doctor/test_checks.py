"""Each check, of a healthy installation and of broken ones: the level, what is said, and what to do."""

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.decoding import convert
from scheduler.doctor import (
    certificates,
    clock,
    installation,
    leases,
    pending,
    plugins,
    port,
    replicas,
    rights,
    served,
    tables,
    versions,
)
from scheduler.doctor.cluster import NotThere
from scheduler.doctor.examination import CHECKS, examine
from scheduler.doctor.findings import Finding, Level
from scheduler.doctor.objects import Pod
from scheduler.doctor.samples import Samples
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.services.api_server import ApiServer
from tests.unit.doctor.fake_cluster import BUILD, NOW, FakeCluster, a_lease, a_pod, config_of, facts, levels

OK, WARNING, PROBLEM, UNKNOWN = Level.OK, Level.WARNING, Level.PROBLEM, Level.UNKNOWN

HEALTHY = {
    "livez?verbose": "[+]ping ok\nlivez check passed\n",
    "readyz?verbose": "[+]ping ok\nreadyz check passed\n",
    "metrics": BUILD + 'scheduler_cache_size{type="nodes"} 2.0\nscheduler_cache_size{type="pods"} 0.0\n',
}
BUDGETS = "/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets"
A_NODE = {"metadata": {"name": "n1", "labels": {"kubernetes.io/arch": "amd64"}}}


def healthy(**changes: Any) -> FakeCluster:
    lists = {BUDGETS: [{}], "/api/v1/nodes": [A_NODE, A_NODE]}
    return FakeCluster(**{"lists": lists, "pages": HEALTHY, **changes})


def samples(text: str) -> Samples:
    return Samples(BUILD + text)


def said(findings: list[Finding]) -> str:
    return "\n".join(f"{each.message} {each.advice}" for each in findings)


async def test_nothing_is_wrong_with_a_healthy_installation() -> None:
    findings = await examine(facts(samples=Samples(HEALTHY["metrics"])), healthy())

    assert [each for each in findings if each.level is not OK] == []
    assert list(dict.fromkeys(each.topic for each in findings)) == list(
        dict.fromkeys(topic for topic, _ in CHECKS if topic != "installation")
    )


async def test_what_cannot_be_read_for_one_reason_is_one_line() -> None:
    lost = ClusterError("the scheduler does not answer")

    findings = await examine(facts(samples=lost, config=lost), healthy())

    (line,) = [each for each in findings if each.level is UNKNOWN]
    assert line.message == "the scheduler does not answer"
    assert line.topic == "versions, rights, served, leader, clock, tables, plugins, certificates, pods"


async def test_what_the_user_may_not_read_names_the_role() -> None:
    findings = await examine(facts(), healthy(forbidden=["/api/v1/pods"]))

    (line, *_) = [each for each in findings if each.level is UNKNOWN]
    assert line.message == "you cannot read /api/v1/pods"
    assert "doctor-reader.yaml" in line.advice


async def test_another_installation_is_offered_where_there_is_none_of_that_name() -> None:
    other = {"metadata": {"name": "gpu", "namespace": "ml", "labels": {"app.kubernetes.io/instance": "gpu"}}}
    cluster = healthy(lists={"/api/v1/services": [other]})

    findings = await installation.found(facts(service=NotThere("not found")), cluster)

    assert levels(findings) == [PROBLEM]
    assert findings[0].advice == "--service-namespace ml --service gpu"


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("v1.34.0", OK, "v1.34.0"),
        ("v1.37.2-gke.1", OK, "v1.37.2-gke.1"),
        ("v1.33.9", WARNING, "older than the oldest that Loadmaster is tested with, 1.34"),
        ("v1.38.0", WARNING, "newer than the newest"),
        ("v2.0.0", WARNING, "newer than the newest"),
        ("", WARNING, "cannot be read"),
        ("banana" * 100, WARNING, "cannot be read"),
    ],
)
async def test_the_api_servers_version_is_judged(version: str, level: Level, words: str) -> None:
    findings = await versions.of_the_api_server(facts(server=ApiServer(version)), FakeCluster())

    assert levels(findings) == [level]
    assert words in findings[0].message


def of_version(version: str) -> Samples:
    return Samples(f'kubernetes_build_info{{git_version="v1.36.3+loadmaster.{version}"}} 1.0\n')


@pytest.mark.parametrize(
    ("running", "levels_"), [("0.2.0", [OK]), ("0.2.9", [OK]), ("0.3.0", [OK, WARNING]), ("7.0.0", [WARNING, WARNING])]
)
async def test_two_minor_versions_apart_is_too_far(
    running: str, levels_: list[Level], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "version", lambda _: "0.2.0")

    assert levels(await versions.of_loadmaster(facts(samples=of_version(running)), FakeCluster())) == levels_


async def test_another_scheduler_behind_the_service_is_seen() -> None:
    text = 'kubernetes_build_info{git_version="v1.36.3"} 1.0\n'

    findings = await versions.of_loadmaster(facts(samples=Samples(text)), FakeCluster())

    assert "'v1.36.3', is not one of Loadmaster's" in said(findings)


@pytest.mark.parametrize(("other", "level"), [("0.3.0", WARNING), ("0.4.0", PROBLEM)])
async def test_replicas_of_two_versions_are_named(other: str, level: Level) -> None:
    pods = (a_pod("a"), a_pod("b", version=other))

    findings = await versions.of_the_replicas(facts(pods=pods), FakeCluster())

    assert levels(findings) == [level]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("registry.k8s.io/kube-scheduler:v1.35.1", [OK]),
        ("registry.k8s.io/kube-scheduler:v1.34.1", [WARNING]),
        ("registry:5000/kube-scheduler", []),
    ],
)
async def test_kube_scheduler_beside_it_is_compared(image: str, expected: list[Level]) -> None:
    pod = {"spec": {"containers": [{"image": image}]}}
    cluster = FakeCluster(lists={"/api/v1/namespaces/kube-system/pods": [pod]})

    assert levels(await versions.of_kube_scheduler(facts(), cluster)) == expected


async def test_a_missing_permission_comes_with_the_rule_to_add() -> None:
    findings = await rights.of_the_account(
        facts(), FakeCluster(lacking={"kube-system/loadmaster": ["pods/binding", "leases"]})
    )

    assert levels(findings) == [PROBLEM]
    assert "may not create pods/binding (core)" in findings[0].message
    assert '- {apiGroups: [""], resources: [pods/binding], verbs: [create]}' in findings[0].advice
    assert "resourceNames: [loadmaster], verbs: [get, list, update, watch]}  # a Role in kube-system" in said(findings)


async def test_an_account_that_may_not_review_makes_metrics_unreadable() -> None:
    findings = await rights.of_the_port(facts(), FakeCluster(lacking={"kube-system/loadmaster": ["tokenreviews"]}))

    assert levels(findings) == [PROBLEM]
    assert "--clusterrole=system:auth-delegator --serviceaccount=kube-system:loadmaster" in findings[0].advice


async def test_what_the_user_lacks_for_explain_and_snapshot_is_a_warning() -> None:
    findings = await rights.of_the_user(facts(), FakeCluster(lacking={"": ["services/proxy", "jobs"]}))

    assert levels(findings) == [WARNING, WARNING]
    assert "--role=loadmaster-explain" in findings[0].advice
    assert "you may not list jobs (batch)" in findings[1].message


async def test_what_a_plugin_of_the_users_own_needs_is_not_claimed_to_be_checked() -> None:
    profile = {"schedulerName": "x", "plugins": {"multiPoint": {"enabled": [{"name": "Mine"}]}}}

    findings = await rights.of_the_account(facts(config=config_of(profiles=[profile])), FakeCluster())

    assert levels(findings) == [OK]
    assert "apart from what Mine may need" in findings[0].message


async def test_resources_that_are_not_served_are_named_by_group() -> None:
    findings = await served.resources(facts(), FakeCluster(not_served=["deviceclasses", "resourceslices", "csinodes"]))

    assert levels(findings) == [WARNING, WARNING]
    assert "deviceclasses, resourceslices of resource.k8s.io" in said(findings)


async def test_metrics_server_is_asked_for_where_load_aware_is_on() -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "LoadAware"}]}}}
    config = config_of(profiles=[profile])

    findings = await served.resources(facts(config=config), FakeCluster(not_served=["nodes"]))

    assert "install metrics-server" in said(findings)


LEASES: Mapping[str, tuple[Any, Level, str]] = {
    "none": (NotThere("no"), PROBLEM, "no replica has ever led"),
    "released": (a_lease(""), PROBLEM, "nobody holds the Lease"),
    "silent": (a_lease(renewed=60), PROBLEM, "was not renewed for 60 s"),
    "ours": (a_lease(), OK, "loadmaster-7d4b9c6f5d-abcde leads since 2026-06-01 12:00 UTC; renewed 1 s ago"),
    "another Deployment's": (a_lease("gpu-5d4b9c6f5d-zzzzz_2"), PROBLEM, "of the Deployment gpu, another installation"),
    "another namespace's": (
        a_lease(
            "loadmaster-5d4b9c6f5d-zzzzz_2",
            annotations={
                "loadmaster/leader": '{"identity": "loadmaster-5d4b9c6f5d-zzzzz_2", "installation": "ml/loadmaster"}'
            },
        ),
        PROBLEM,
        "of ml/loadmaster, another installation",
    ),
    "an older pod of ours": (a_lease("loadmaster-5d4b9c6f5d-zzzzz_2"), OK, "leads"),
    "a process outside": (a_lease("laptop_2"), OK, "laptop leads"),
    "an annotation of another holder": (
        a_lease(annotations={"loadmaster/leader": '{"identity": "else", "installation": "ml/x", "version": "9"}'}),
        OK,
        "abcde leads",
    ),
    "an annotation that is none": (a_lease(annotations={"loadmaster/leader": "[" * 5000}), OK, "abcde leads"),
}


@pytest.mark.parametrize(("lease", "level", "words"), LEASES.values(), ids=LEASES)
async def test_the_lease_says_who_works(lease: Any, level: Level, words: str) -> None:
    findings = await leases.leader(facts(lease=lease), FakeCluster())

    assert levels(findings) == [level], said(findings)
    assert words in findings[0].message


def of_installation(name: str, namespace: str = "ml") -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "loadmaster", "app.kubernetes.io/instance": name}
    return {"metadata": {"name": f"{name}-x", "namespace": namespace, "labels": labels}}


def config_map(name: str) -> dict[str, Any]:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{schedulerName: {name}}}]\n"
    )
    return {"data": {"config.yaml": text}}


@pytest.mark.parametrize(("profile", "level"), [("loadmaster", PROBLEM), ("gpu", OK)])
async def test_two_installations_may_not_serve_one_name(profile: str, level: Level) -> None:
    cluster = FakeCluster(
        lists={"/api/v1/pods": [of_installation("gpu"), of_installation("loadmaster", "kube-system")]},
        objects={"/api/v1/namespaces/ml/configmaps/gpu": config_map(profile)},
    )

    findings = await leases.others(facts(), cluster)

    assert levels(findings) == [level]
    assert f"another installation, ml/gpu, serves {profile}" in findings[0].message


async def test_an_installation_whose_configuration_cannot_be_read_is_named() -> None:
    findings = await leases.others(facts(), FakeCluster(lists={"/api/v1/pods": [of_installation("gpu")]}))

    assert levels(findings) == [UNKNOWN]


async def test_kube_scheduler_and_we_may_not_both_be_the_default() -> None:
    lease = {"spec": {"holderIdentity": "cp-1_x", "renewTime": NOW, "leaseDurationSeconds": 15}}
    config = config_of(profiles=[{"schedulerName": "default-scheduler"}])

    findings = await leases.others(facts(config=config), FakeCluster(objects={leases.KUBE_SCHEDULER_LEASE: lease}))

    assert levels(findings) == [WARNING]
    assert "kube-scheduler on cp-1 serves default-scheduler, too" in findings[0].message


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (0.4, OK, "within a second of"),
        (-90.0, WARNING, "90 s ahead of"),
        (90.0, WARNING, "behind"),
        (None, UNKNOWN, ""),
    ],
)
async def test_a_clock_that_is_off_is_named(ahead: float | None, level: Level, words: str) -> None:
    findings = await clock.of_this_machine(facts(server=ApiServer("v1.36.3", ahead)), FakeCluster())

    assert levels(findings) == [level]
    assert words in findings[0].message


async def test_the_leaders_clock_is_the_one_in_the_lease() -> None:
    lease = a_lease(managedFields=[{"time": NOW - timedelta(seconds=30)}], renewed=0)

    findings = await clock.of_the_leader(facts(lease=lease), FakeCluster())

    assert levels(findings) == [WARNING]
    assert "the leader's clock is 30 s ahead of" in findings[0].message


async def test_tables_that_differ_are_looked_at_again_before_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SETTLE_SECONDS", 0)
    metrics = BUILD + 'scheduler_cache_size{type="nodes"} 1.0\nscheduler_cache_size{type="pods"} 0.0\n'
    late = healthy()

    differing = await tables.counts(facts(samples=Samples(metrics)), healthy(pages={"metrics": metrics}))
    settled = await tables.counts(facts(samples=Samples(metrics)), late)

    assert levels(differing) == [WARNING, OK]
    assert "the scheduler knows 1 nodes, and the API server has 2" in differing[0].message
    assert levels(settled) == [OK, OK]


async def test_lost_changes_and_unreadable_objects_are_told() -> None:
    text = (
        'loadmaster_resync_repairs_total{kind="missed",resource="pods"} 3.0\n'
        'loadmaster_watch_errors_total{reason="decode",resource="nodes"} 1.0\n'
    )

    findings = await tables.repairs(facts(samples=samples(text)), FakeCluster())

    assert levels(findings) == [WARNING, WARNING]
    assert "3 lost changes" in findings[0].message
    assert "nodes" in findings[1].message


async def test_a_refused_configuration_is_named_with_its_first_problem() -> None:
    refused = facts(
        samples=samples("loadmaster_config_is_current 0.0\n"), file=ConfigError(["config.yaml:3: no plugin Nod"])
    )

    findings = await plugins.configuration(refused, FakeCluster())

    assert levels(findings) == [PROBLEM]
    assert "was refused: config.yaml:3: no plugin Nod; the last good one is in use" in findings[0].message


async def test_a_configuration_that_keeps_it_from_starting_is_named() -> None:
    lost = ClusterError("no answer")
    refused = facts(samples=lost, config=lost, is_running=False, file=ConfigError(["config.yaml:3: no plugin Nod"]))

    findings = await plugins.configuration(refused, FakeCluster())

    assert "the ConfigMap kube-system/loadmaster is refused: config.yaml:3" in findings[0].message


async def test_failing_plugins_are_named() -> None:
    text = (
        'loadmaster_plugins_paused{plugin="Bad",profile="x",action="filter"} 1.0\n'
        'loadmaster_plugin_faults_total{plugin="Bad",extension_point="Filter",kind="error"} 3.0\n'
        'loadmaster_plugin_faults_total{plugin="Bad",extension_point="Score",kind="late"} 2.0\n'
        'loadmaster_plugin_data_faults_total{plugin="LoadAware",reason="answer"} 2.0\n'
    )

    findings = await plugins.faults(facts(samples=samples(text)), FakeCluster())

    assert levels(findings) == [PROBLEM, WARNING, WARNING]
    assert "Bad 5 times" in findings[1].message


@pytest.mark.parametrize(("days", "level"), [(365, OK), (29, WARNING), (2, PROBLEM), (-1, PROBLEM)])
async def test_a_certificate_near_its_end_is_named(days: float, level: Level) -> None:
    end = NOW.timestamp() + days * 86400
    text = f'loadmaster_certificate_expiration_timestamp_seconds{{certificate="serving"}} {end}\n'

    findings = await certificates.of_the_scheduler(facts(samples=samples(text)), FakeCluster())

    assert levels(findings) == [level]
    assert "the scheduler's serving certificate end" in findings[0].message


@pytest.mark.parametrize("token", ["", "Bearer x", "Bearer a.b.c", "Bearer a.e30.c", "Bearer a.MTI.c", "Bearer a.é.c"])
def test_a_token_that_is_no_service_accounts_has_no_end(token: str) -> None:
    assert certificates.token_end(token) is None


def test_a_service_accounts_token_has_one() -> None:
    assert certificates.token_end("Bearer a.eyJleHAiOiAxMjN9.c") == 123


async def test_an_unhealthy_port_names_its_checks() -> None:
    pages = {**HEALTHY, "livez?verbose": "[+]ping ok\n[-]watches failed: reason withheld\nlivez check failed\n"}

    findings = await port.health(facts(), healthy(pages=pages))

    assert levels(findings) == [PROBLEM]
    assert "/livez is not healthy: watches" in findings[0].message


@pytest.mark.parametrize(("lacking", "level"), [([], OK), (["/metrics"], PROBLEM)])
async def test_whether_a_prometheus_may_read_metrics_is_asked(lacking: list[str], level: Level) -> None:
    cluster = FakeCluster(lacking={"monitoring/prometheus": lacking})

    assert levels(await port.reader(facts(), cluster, "monitoring/prometheus")) == [level]


def broken(state: dict[str, Any]) -> Any:
    pod = a_pod("loadmaster-1", is_ready=False)
    status = {"name": "loadmaster", "restartCount": 4, **state}
    meta = {"name": pod.metadata.name, "namespace": "kube-system"}
    return convert({"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"containerStatuses": [status]}}, Pod)


async def test_a_replica_that_ends_says_why() -> None:
    ended = {
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"reason": "Error", "message": "may not create pods/binding (core)\n"}},
    }

    findings = await replicas.pods(facts(pods=(broken(ended),)), FakeCluster())

    assert levels(findings) == [PROBLEM, PROBLEM]
    assert "restarted 4 times: Error: may not create pods/binding (core)" in findings[0].message
    assert "0 of 2 replicas are ready" in findings[1].message


@pytest.mark.parametrize(
    "state",
    [
        {"lastState": {"terminated": {"reason": "Error", "message": "exec /usr/bin/python: exec format error"}}},
        {"state": {"waiting": {"reason": "ErrImagePull", "message": "no match for platform in manifest: not found"}}},
    ],
)
async def test_an_image_for_another_architecture_is_called_that(state: dict[str, Any]) -> None:
    findings = await replicas.pods(facts(pods=(broken(state),)), FakeCluster())

    assert "for another architecture than n1" in findings[0].message


async def test_replicas_on_one_node_are_a_warning() -> None:
    findings = await replicas.pods(facts(pods=(a_pod("a"), a_pod("b"))), FakeCluster())

    assert levels(findings) == [WARNING]
    assert "all 2 replicas are on the node n1" in findings[0].message


async def test_a_missing_disruption_budget_is_a_warning() -> None:
    assert levels(await replicas.budget(facts(), FakeCluster())) == [WARNING]


async def test_nodes_of_an_architecture_without_an_image_are_named() -> None:
    nodes = [A_NODE, {"metadata": {"labels": {"kubernetes.io/arch": "s390x"}}}]

    findings = await replicas.architectures(facts(), FakeCluster(lists={"/api/v1/nodes": nodes}))

    assert levels(findings) == [WARNING]
    assert "nodes of s390x" in findings[0].message


def waiting(name: str, scheduler: str, age: float, message: str = "", reason: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": NOW - timedelta(seconds=age)},
        "spec": {"schedulerName": scheduler},
        "status": {"phase": "Pending", "conditions": [condition] if message or reason != "Unschedulable" else []},
    }


async def of_pods(*pods: dict[str, Any]) -> list[Finding]:
    return await pending.pods(facts(), FakeCluster(lists={"/api/v1/pods": list(pods)}))


async def test_pods_for_a_scheduler_that_nobody_runs_are_named_with_the_name_that_was_meant() -> None:
    findings = await of_pods(waiting("web", "loadmastr", 120), waiting("new", "loadmastr", 5))

    assert levels(findings) == [PROBLEM]
    assert "1 pod wait for the scheduler 'loadmastr', which nobody runs, as shop/web" in findings[0].message
    assert findings[0].advice.startswith("did you mean loadmaster?")


async def test_pods_that_another_scheduler_looks_at_are_not_ours_to_judge() -> None:
    assert levels(await of_pods(waiting("web", "volcano", 999, "0/5 nodes are available: 5 x."))) == [OK]


async def test_pods_of_ours_that_were_never_tried_are_a_problem() -> None:
    assert levels(await of_pods(waiting("web", "loadmaster", 120))) == [PROBLEM]


async def test_long_waits_come_with_the_most_frequent_reasons() -> None:
    message = (
        "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: 0/5 nodes are available"
    )
    findings = await of_pods(
        waiting("a", "loadmaster", 400, message),
        waiting("b", "loadmaster", 400, "0/5 nodes are available: 5 Insufficient cpu. preemption: none"),
        waiting("c", "loadmaster", 400, reason="SchedulingGated"),
        waiting("young", "loadmaster", 10, message),
    )

    assert levels(findings) == [WARNING]
    assert "3 pods wait for more than 5 minutes: Insufficient cpu (2)" in findings[0].message
    assert "had untolerated taint(s) (1)" in findings[0].message
    assert "scheduling gates (1)" in findings[0].message
    assert findings[0].advice == "loadmaster explain shop/a"


def test_each_alert_that_is_named_has_its_place_in_the_runbook() -> None:
    root = Path(__file__).parents[3]
    text = "".join(path.read_text() for path in (root / "scheduler" / "doctor").glob("*.py"))
    named = set(re.findall(r"runbook\.md, (\w+)", text))

    assert named
    assert named <= set(re.findall(r"^### (\w+)$", (root / "docs" / "runbook.md").read_text(), re.MULTILINE))


def test_metrics_that_are_none_are_an_error_of_the_cluster() -> None:
    for text in ("<html>", "", "kubernetes_build_info{{{{ 1\n", 'kubernetes_build_info{a="b" x\n'):
        with pytest.raises(ClusterError):
            Samples(text)


def test_metrics_of_a_large_cluster_are_read_quickly() -> None:
    text = BUILD + "".join(f'scheduler_x{{a="{i}"}} 1.0\n' for i in range(100_000))
    began = time.process_time()

    Samples(text)

    assert time.process_time() - began < 2
