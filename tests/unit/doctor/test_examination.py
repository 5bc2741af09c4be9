"""All checks at once: order, topics, and what could not be checked."""

import re
from pathlib import Path

from scheduler.doctor.evidence.samples import Samples
from scheduler.doctor.examination import CHECKS, examine
from scheduler.framework.errors import ClusterError
from tests.unit.doctor.fake_cluster import HEALTHY, OK, UNKNOWN, facts, healthy


async def test_nothing_is_wrong_with_a_healthy_installation() -> None:
    findings = await examine(facts(samples=Samples(HEALTHY["metrics"])), healthy())

    assert [each for each in findings if each.level is not OK] == []
    assert list(dict.fromkeys(each.topic for each in findings)) == list(
        dict.fromkeys(topic for topic, _ in CHECKS if topic != "installation")
    )


async def test_what_cannot_be_read_for_one_reason_is_one_line() -> None:
    lost = ClusterError("the scheduler does not answer")

    findings = await examine(facts(samples=lost, config=lost), healthy())

    (line,) = [each for each in findings if each.level is UNKNOWN]
    assert line.message == "the scheduler does not answer"
    assert line.topic == "versions, rights, served, leader, clock, tables, plugins, certificates, pods"


async def test_what_the_user_may_not_read_names_the_role() -> None:
    findings = await examine(facts(), healthy(forbidden=["/api/v1/pods"]))

    (line, *_) = [each for each in findings if each.level is UNKNOWN]
    assert line.message == "you cannot read /api/v1/pods"
    assert "doctor-reader.yaml" in line.advice


def test_each_alert_that_is_named_has_its_place_in_the_runbook() -> None:
    root = Path(__file__).parents[3]
    text = "".join(path.read_text() for path in (root / "scheduler" / "doctor").rglob("*.py"))
    named = set(re.findall(r"runbook\.md, (\w+)", text))

    assert named
    assert named <= set(re.findall(r"^### (\w+)$", (root / "docs" / "runbook.md").read_text(), re.MULTILINE))
