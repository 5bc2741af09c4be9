"""Versions that go together, and those that do not."""

import pytest

from scheduler.doctor.checks import versions
from scheduler.doctor.evidence.samples import Samples
from scheduler.doctor.findings import Level
from scheduler.kube.services.api_server import ApiServer
from tests.unit.doctor.fake_cluster import OK, PROBLEM, WARNING, FakeCluster, a_pod, facts, levels, said


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
    assert level is OK or "docs/versions.md" in findings[0].advice


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
