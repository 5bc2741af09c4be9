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


@pytest.mark.parametrize(
    ("token", "end"),
    [
        *(
            (token, None)
            for token in ("", "Bearer x", "Bearer a.b.c", "Bearer a.e30.c", "Bearer a.MTI.c", "Bearer a.é.c")
        ),
        ("Bearer a.eyJleHAiOiAxMjN9.c", 123),
    ],
)
def test_a_token_has_an_end_if_it_is_a_service_accounts(token: str, end: int | None) -> None:
    assert certificates.token_end(token) == end
