"""The permissions of the scheduler's account, and of the user."""

from scheduler.doctor.checks import rights
from tests.unit.doctor.fake_cluster import OK, PROBLEM, WARNING, FakeCluster, config_of, facts, levels, said


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
    findings = await rights.resources(facts(), FakeCluster(not_served=["deviceclasses", "resourceslices", "csinodes"]))

    assert levels(findings) == [WARNING, WARNING]
    assert "deviceclasses, resourceslices of resource.k8s.io" in said(findings)


async def test_what_older_api_servers_do_not_have_is_not_missing() -> None:
    findings = await rights.resources(facts(), FakeCluster(not_served=["devicetaintrules"]))

    assert "not served" not in said(findings)


async def test_metrics_server_is_asked_for_where_load_aware_is_on() -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "LoadAware"}]}}}
    config = config_of(profiles=[profile])

    findings = await rights.resources(facts(config=config), FakeCluster(not_served=["nodes"]))

    assert "install metrics-server" in said(findings)
