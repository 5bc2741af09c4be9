"""The scheduler's port, and who may read its metrics."""

from typing import Any

import pytest

from scheduler.doctor.checks import port
from scheduler.doctor.findings import Level
from tests.unit.doctor.fake_cluster import HEALTHY, OK, PROBLEM, FakeCluster, facts, healthy, levels

MONITOR = "/apis/monitoring.coreos.com/v1/namespaces/kube-system/servicemonitors/loadmaster"
EVENTS = "/api/v1/namespaces/kube-system/events"
NO_FILES = "it accesses file system via bearer token file which Prometheus specification prohibits"


async def test_an_unhealthy_port_names_its_checks() -> None:
    pages = {**HEALTHY, "livez?verbose": "[+]ping ok\n[-]watches failed: reason withheld\nlivez check failed\n"}

    findings = await port.health(facts(), healthy(pages=pages))

    assert levels(findings) == [PROBLEM]
    assert "/livez is not healthy: watches" in findings[0].message


@pytest.mark.parametrize(("lacking", "level"), [([], OK), (["/metrics"], PROBLEM)])
async def test_whether_a_prometheus_may_read_metrics_is_asked(lacking: list[str], level: Level) -> None:
    cluster = FakeCluster(lacking={"monitoring/prometheus": lacking})

    assert levels(await port.reader(facts(), cluster, "monitoring/prometheus")) == [level]


@pytest.mark.parametrize(
    ("status", "events"),
    [
        pytest.param(
            {"bindings": [{"conditions": [{"type": "Accepted", "status": "False", "message": NO_FILES}]}]},
            [],
            id="status",
        ),
        pytest.param(
            {},
            [{"message": f"ServiceMonitor loadmaster was rejected due to invalid configuration: {NO_FILES}"}],
            id="an Event",
        ),
    ],
)
async def test_a_service_monitor_that_was_rejected_says_why_and_what_to_set(status: Any, events: list[Any]) -> None:
    (finding,) = await port.metrics(facts(), healthy(objects={MONITOR: {"status": status}}, lists={EVENTS: events}))

    assert levels([finding]) == [PROBLEM]
    assert finding.message == f"the ServiceMonitor was rejected: {NO_FILES}"
    assert "monitoring.serviceMonitor.authorization" in finding.advice


async def test_a_service_monitor_that_was_accepted_is_all_right() -> None:
    accepted = {"bindings": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}

    (finding,) = await port.metrics(facts(), healthy(objects={MONITOR: {"status": accepted}}))

    assert (finding.level, finding.message) == (OK, "metrics can be read, and a ServiceMonitor is there")
