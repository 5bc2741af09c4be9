"""What the API server does not serve."""

from scheduler.doctor.checks import served
from tests.unit.doctor.fake_cluster import WARNING, FakeCluster, config_of, facts, levels, said


async def test_resources_that_are_not_served_are_named_by_group() -> None:
    findings = await served.resources(facts(), FakeCluster(not_served=["deviceclasses", "resourceslices", "csinodes"]))

    assert levels(findings) == [WARNING, WARNING]
    assert "deviceclasses, resourceslices of resource.k8s.io" in said(findings)


async def test_what_older_api_servers_do_not_have_is_not_missing() -> None:
    findings = await served.resources(facts(), FakeCluster(not_served=["devicetaintrules"]))

    assert "not served" not in said(findings)


async def test_metrics_server_is_asked_for_where_load_aware_is_on() -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "LoadAware"}]}}}
    config = config_of(profiles=[profile])

    findings = await served.resources(facts(config=config), FakeCluster(not_served=["nodes"]))

    assert "install metrics-server" in said(findings)
