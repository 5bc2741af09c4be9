"""`kubectl loadmaster doctor` on what the chart has installed, and whether its advice helps."""

import json
from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from tests.chart import CHART, Helm
from tests.controlplane import wait_until
from tests.kind.cluster import KindCluster
from tests.kind.plugin import kubectl_loadmaster
from tests.kind.release import NAMESPACE, RELEASE, run_helm
from tests.kind.workloads import SOON

ROLE: Final = f"{NAMESPACE}:{RELEASE}"
BINDING: Final = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}

Lines = list[dict[str, str]]


def doctor(cluster: KindCluster) -> tuple[int, Lines]:
    """Its exit code, and what is not as it should be. The example of `make kind` has a pod that waits for ever."""
    reported = kubectl_loadmaster(cluster, "doctor", "--output=json")
    assert reported.stderr == "" or reported.returncode == 1  # then kubectl repeats the exit code there
    findings: Lines = json.loads(reported.stdout)["findings"]
    return reported.returncode, [each for each in findings if each["level"] != "ok" and each["topic"] != "pods"]


def test_all_is_well_with_what_the_chart_installs(cluster: KindCluster) -> None:
    assert doctor(cluster) == (0, [])


@pytest.fixture
def may_not_bind(cluster: KindCluster) -> Iterator[None]:
    """The scheduler's ClusterRole without the rule by which it binds pods; afterwards it has it again."""
    rules = json.loads(cluster.kubectl("get", "clusterrole", ROLE, "--output=json"))["rules"]
    give(cluster, [rule for rule in rules if rule != BINDING])
    yield
    give(cluster, rules)


def give(cluster: KindCluster, rules: list[dict[str, list[str]]]) -> None:
    """Let the ClusterRole have these rules and no others."""
    patch = json.dumps({"rules": rules})
    cluster.kubectl("patch", "clusterrole", ROLE, "--type=merge", f"--patch={patch}")


@pytest.mark.usefixtures("may_not_bind")
def test_a_rule_that_was_taken_away_is_named_until_the_chart_is_applied_again(cluster: KindCluster, helm: Helm) -> None:
    wait_until(lambda: doctor(cluster)[0] == 1, SOON, "the missing rule is noticed")
    _, (problem,) = doctor(cluster)

    run_helm(helm, "upgrade", RELEASE, str(CHART), "--reuse-values")

    assert problem["message"] == f"the account {NAMESPACE}/{RELEASE} may not create pods/binding (core)"
    assert "or apply the chart again" in problem["advice"]
    assert yaml.safe_load(problem["advice"].splitlines()[-1]) == [BINDING]
    wait_until(lambda: doctor(cluster) == (0, []), SOON, "all is well again")
