"""Certificates and tokens near their end."""

import pytest

from scheduler.doctor.checks import certificates
from scheduler.doctor.findings import Level
from tests.unit.doctor.fake_cluster import NOW, OK, PROBLEM, WARNING, FakeCluster, facts, levels, samples


@pytest.mark.parametrize(("days", "level"), [(365, OK), (29, WARNING), (2, PROBLEM), (-1, PROBLEM)])
async def test_a_certificate_near_its_end_is_named(days: float, level: Level) -> None:
    end = NOW.timestamp() + days * 86400
    text = f'loadmaster_certificate_expiration_timestamp_seconds{{certificate="serving"}} {end}\n'

    findings = await certificates.of_the_scheduler(facts(samples=samples(text)), FakeCluster())

    assert levels(findings) == [level]
    assert "the scheduler's serving certificate end" in findings[0].message


@pytest.mark.parametrize("token", ["", "Bearer x", "Bearer a.b.c", "Bearer a.e30.c", "Bearer a.MTI.c", "Bearer a.é.c"])
def test_a_token_that_is_no_service_accounts_has_no_end(token: str) -> None:
    assert certificates.token_end(token) is None


def test_a_service_accounts_token_has_one() -> None:
    assert certificates.token_end("Bearer a.eyJleHAiOiAxMjN9.c") == 123
