"""When certificates end."""

from datetime import UTC, datetime

import pytest

from scheduler.api.certificates import expires_at
from scheduler.serve.port.own_certificate import LIFETIME, make_pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_certificate_tells_when_it_ends_whatever_comes_after_it() -> None:
    first, second = make_pair("127.0.0.1", NOW), make_pair("127.0.0.1", NOW - LIFETIME)

    assert expires_at(first.certificate + second.certificate) == (NOW + LIFETIME).timestamp()


@pytest.mark.parametrize(
    "pem", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate_ends_at_no_time(pem: bytes) -> None:
    assert expires_at(pem) is None
