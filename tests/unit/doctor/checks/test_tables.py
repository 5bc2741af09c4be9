"""Tables that differ from the API server's."""

import pytest

from scheduler.doctor.checks import tables
from scheduler.doctor.evidence.samples import Samples
from tests.unit.doctor.fake_cluster import BUILD, OK, WARNING, FakeCluster, facts, healthy, levels, samples


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


async def test_a_resource_that_is_not_served_is_no_object_that_could_not_be_used() -> None:
    text = 'loadmaster_watch_errors_total{reason="absent",resource="devicetaintrules.v1.resource.k8s.io"} 1.0\n'

    assert levels(await tables.repairs(facts(samples=samples(text)), FakeCluster())) == [OK]
