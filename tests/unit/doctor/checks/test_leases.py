"""Who leads, and who else serves the same pods."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from scheduler.doctor.checks import leases
from scheduler.doctor.evidence.cluster import NotThere
from scheduler.doctor.findings import Level
from scheduler.kube.services.api_server import ApiServer
from tests.unit.doctor.fake_cluster import (
    NOW,
    OK,
    PROBLEM,
    UNKNOWN,
    WARNING,
    FakeCluster,
    a_lease,
    config_of,
    facts,
    levels,
    said,
)

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
    findings = await leases.of_this_machine(facts(server=ApiServer("v1.36.3", ahead)), FakeCluster())

    assert levels(findings) == [level]
    assert words in findings[0].message


async def test_the_leaders_clock_is_the_one_in_the_lease() -> None:
    lease = a_lease(managedFields=[{"time": NOW - timedelta(seconds=30)}], renewed=0)

    findings = await leases.of_the_leader(facts(lease=lease), FakeCluster())

    assert levels(findings) == [WARNING]
    assert "the leader's clock is 30 s ahead of" in findings[0].message
