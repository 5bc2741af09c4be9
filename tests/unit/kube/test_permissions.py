"""Permissions: one table, the manifest that agrees with it, and what is said when they are missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.framework.nodes.resources import PODS, parse_resource
from scheduler.kube.permissions import (
    HOW_TO_GRANT,
    PERMISSIONS,
    Permission,
    check_permissions,
    lease_permissions,
    permissions_for,
)
from tests.chart import load_documents, schedulers_own
from tests.unit.cycle.fakes import an_engine
from tests.unit.kube.fake_api import Answer, FakeApi, fake_client

ROOT = Path(__file__).parents[3]
REVIEW = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def default_permissions() -> tuple[Permission, ...]:
    """What the default profile needs."""
    resources = an_engine().engine.profiles.resources
    return permissions_for(resources.watched.values(), resources.written)


def the_role(kind: str) -> Any:
    """As the manifest has it."""
    documents = schedulers_own(load_documents((ROOT / "deploy/loadmaster.yaml").read_text()))
    (role,) = (each for each in documents if each["kind"] == kind)
    return role


def test_the_roles_are_the_table_and_what_leader_election_needs() -> None:
    role = the_role("Role")
    leases = lease_permissions(role["metadata"]["namespace"], "loadmaster")
    for rules, permissions in ((the_role("ClusterRole")["rules"], default_permissions()), (role["rules"], leases)):
        assert rules == [
            {"apiGroups": [each.group], "resources": [each.resource], "verbs": list(each.verbs)}
            | ({"resourceNames": [each.name]} if each.name else {})
            for each in permissions
        ]


def test_each_watched_resource_is_listed_and_watched_once() -> None:
    watched = [parse_resource(name) for name in ("foos.v1.example.com", "foos.v2.example.com", "Namespace")]

    assert permissions_for(watched) == (
        *PERMISSIONS,
        Permission("", "namespaces", ("list", "watch")),
        Permission("example.com", "foos", ("list", "watch")),
    )


def test_what_is_written_is_added_to_what_is_watched_or_done_anyway() -> None:
    budgets = parse_resource("foos.v1.example.com")
    written = [(budgets, "", ("get", "patch")), (budgets, "status", ("update",)), (PODS, "status", ("get",))]

    rules = {(each.group, each.resource): each.verbs for each in permissions_for([budgets], written)}

    assert rules["example.com", "foos"] == ("get", "list", "patch", "watch")
    assert rules["example.com", "foos/status"] == ("update",)
    assert rules["", "pods/status"] == ("get", "patch")


async def check(directory: Path, answer: Answer, permissions: Sequence[Permission] = PERMISSIONS) -> FakeApi:
    """Ask an API server about them that gives this answer to each question."""
    api = FakeApi().on(REVIEW, answer)
    async with fake_client(directory, api) as client:
        await check_permissions(client, permissions)
    return api


ALLOWED, DENIED = (Answer(201, {"status": {"allowed": allowed}}) for allowed in (True, False))


async def test_all_is_well_when_everything_is_allowed(tmp_path: Path) -> None:
    api = await check(tmp_path, ALLOWED)

    asked = [request.body["spec"]["resourceAttributes"] for request in api.requests]
    assert len(asked) == sum(len(permission.verbs) for permission in PERMISSIONS)
    assert {"verb": "create", "group": "", "resource": "pods", "subresource": "binding"} in asked


async def test_what_is_missing_has_a_line_per_resource(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        await check(tmp_path, DENIED)

    head, *rules = raised.value.problems[: -len(PERMISSIONS) - 1]
    assert head == "these rules are missing:"
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in yaml.safe_load("\n".join(rules))
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {(each.group, each.resource): set(each.verbs) for each in PERMISSIONS}
    assert "may not list, watch nodes (core)" in raised.value.problems
    assert "may not create pods/binding (core)" in raised.value.problems
    assert "may not create, patch events (events.k8s.io)" in raised.value.problems


async def test_what_an_account_without_any_permission_lacks_fits_into_a_termination_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        await check(tmp_path, DENIED, (*default_permissions(), *lease_permissions("kube-system", "loadmaster")))

    leases = "leases (coordination.k8s.io) in namespace kube-system"
    assert f"may not create {leases}" in raised.value.problems
    assert f"may not get, list, update, watch {leases} named loadmaster" in raised.value.problems
    assert raised.value.problems[-2].endswith("--leader-elect=false")
    denials = raised.value.problems[[line[:7] for line in raised.value.problems].index("may not") :]
    assert len("\n".join(denials).encode()) < 2048 - 100  # the source may have a longer name
    assert raised.value.problems[-1].endswith(HOW_TO_GRANT)


def test_what_is_said_of_granting_names_the_cluster_role_of_chart_and_manifest() -> None:
    template = (ROOT / "charts/loadmaster/templates/_helpers.tpl").read_text()

    assert "{{ .Release.Namespace }}:{{ include" in template
    assert f"{the_role('ClusterRole')['metadata']['name']} in deploy/loadmaster.yaml" in HOW_TO_GRANT


async def test_credentials_that_are_not_accepted_are_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not accept the credentials"):
        await check(tmp_path, Answer(401))


async def test_an_api_server_in_trouble_is_a_cluster_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="500: boom"):
        await check(tmp_path, Answer(500, {"message": "boom"}))
