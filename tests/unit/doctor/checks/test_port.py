"""The scheduler's port, and who may read its metrics."""

import pytest

from scheduler.doctor.checks import port
from scheduler.doctor.findings import Level
from tests.unit.doctor.fake_cluster import HEALTHY, OK, PROBLEM, FakeCluster, facts, healthy, levels


async def test_an_unhealthy_port_names_its_checks() -> None:
    pages = {**HEALTHY, "livez?verbose": "[+]ping ok\n[-]watches failed: reason withheld\nlivez check failed\n"}

    findings = await port.health(facts(), healthy(pages=pages))

    assert levels(findings) == [PROBLEM]
    assert "/livez is not healthy: watches" in findings[0].message


@pytest.mark.parametrize(("lacking", "level"), [([], OK), (["/metrics"], PROBLEM)])
async def test_whether_a_prometheus_may_read_metrics_is_asked(lacking: list[str], level: Level) -> None:
    cluster = FakeCluster(lacking={"monitoring/prometheus": lacking})

    assert levels(await port.reader(facts(), cluster, "monitoring/prometheus")) == [level]
