"""`status.used` of elastic quotas, and what is said of shares that cannot be used."""

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.api.objects import ObjectMeta
from scheduler.api.quota.elastic_quotas import ElasticQuota, ElasticQuotaStatus
from scheduler.framework.events import ELASTIC_QUOTA
from scheduler.framework.shares import DeclaredShare
from tests.fakes import settle
from tests.unit.quota.waiting.shares import Sharing


class Api:
    """Answers patches of quotas, and remembers them."""

    def __init__(self, stage: Sharing) -> None:
        self._stage = stage
        self.patches: list[tuple[str, Mapping[str, Any]]] = []

    async def patch(self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str) -> Any:
        assert (resource, subresource) == (ELASTIC_QUOTA, "status")
        self.patches.append((f"{namespace}/{name}", patch["status"]["used"]))
        before: ElasticQuota | None = self._stage.engine.objects.get(resource, name, namespace)
        assert before is not None
        used = {key: value for key, value in patch["status"]["used"].items() if value is not None}
        version = str(int(before.metadata.resource_version) + 1000)
        metadata = ObjectMeta(name=name, namespace=namespace, uid=before.metadata.uid, resource_version=version)
        return ElasticQuota(metadata, before.spec, ElasticQuotaStatus(used))


class Stage(Sharing):
    """With an API server for statuses, and Events."""

    def __init__(self, *shares: DeclaredShare) -> None:
        super().__init__(*shares)
        parts = self.engine.share_parts._parts
        assert parts is not None
        self.api = Api(self)
        parts.statuses._writer._writer = self.api  # type: ignore[assignment]
        self.said: list[tuple[str, str, str]] = []
        parts.reports._events = self

    def object_event(self, resource: str, metadata: ObjectMeta, reason: str, note: str) -> None:
        self.said.append((f"{metadata.namespace}/{metadata.name}", reason, note))

    async def look(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Let a second pass; return the patches of that."""
        before = len(self.api.patches)
        self.engine.share_parts.catch_up()
        await settle()
        return self.api.patches[before:]


async def test_used_is_written_once_when_it_changes() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4", "memory": "1Gi"}, maximum={"cpu": "4", "memory": "1Gi"})
    stage.pod("one", requests={"cpu": "1500m", "memory": "512Mi"})
    await stage.try_pod("two", requests={"cpu": "500m"})

    patches = await stage.look()

    assert patches == [("a/quota", {"cpu": "2", "memory": "512Mi"})]
    assert await stage.look() == []


async def test_a_status_that_is_right_is_left_alone() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4"}, used={"cpu": "1000m"})
    await stage.try_pods(1)

    assert await stage.look() == []


async def test_what_others_write_is_not_answered() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4"})
    await stage.try_pods(1)
    await stage.look()

    stage.quota(minimum={"cpu": "4"}, used={"cpu": "0"})

    assert await stage.look() == []


async def test_what_is_not_used_any_more_is_taken_out() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4"}, used={"cpu": "0", "example.com/gpu": "3"})

    assert await stage.look() == [("a/quota", {"cpu": "0", "example.com/gpu": None})]


async def test_the_event_of_a_second_quota_names_the_first() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4"}, name="first")
    stage.quota(minimum={"cpu": "4"}, name="second")

    await stage.look()

    note = 'the quota is not used: the namespace has an older one, "a/first", which counts alone'
    assert stage.said == [("a/second", "InvalidQuota", note)]
    await stage.look()
    assert len(stage.said) == 1


async def test_a_problem_that_comes_back_is_said_again() -> None:
    stage = Stage()
    for maximum in ("1", "8", "1"):
        stage.quota(minimum={"cpu": "4"}, maximum={"cpu": maximum})
        await stage.look()

    assert len(stage.said) == 2
    assert list(stage.engine.share_parts.problems()) == [((ELASTIC_QUOTA,), 1)]


async def test_more_guarantees_than_the_cluster_has_are_counted_and_refused_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(DeclaredShare("all", minimum={"cpu": "100"}, namespaces=("a",)))

    await stage.try_pods(1)
    await stage.look()

    assert list(stage.engine.share_parts.excess()) == [(("shares", "cpu"), 36_000)]
    assert [record.message for record in caplog.records] == ["More is guaranteed to shares than the cluster has"]
    assert stage.placed == ["a-0"]
