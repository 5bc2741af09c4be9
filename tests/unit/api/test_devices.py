"""What is passed through from a class or a claim into an allocation."""

import pytest

from scheduler.api.decoding import Decoder
from scheduler.api.devices import AllocatedConfiguration, Allocation, DeviceAllocation, ResourceClaim
from scheduler.api.wording.text import to_json

CLAIM = b'{"metadata":{"uid":"c","resourceVersion":"1"},"spec":{"devices":{"config":[{"opaque":%b}]}}}'


@pytest.mark.parametrize(
    "opaque",
    [
        pytest.param(b'{"driver":"d","parameters":{"a":null}}', id="null"),
        pytest.param(b'{"parameters":{"a":12345678901234567890123,"b":1.10,"c":1E+2,"d":-0}}', id="numbers"),
        pytest.param(b'{"parameters":{"a":%b}}' % (b"9" * 10_000), id="a huge number"),
        pytest.param(b'{"parameters":{"a":%b}}' % (b"[" * 9_000 + b"]" * 9_000), id="depth"),
        pytest.param(rb'{"parameters":{"a":"\ud800","\udc00":"\\ud800 \ud83d\ude00"}}', id="half a surrogate pair"),
        pytest.param(b'{"parameters":{"a":"\xff\xfe \xc3\xa9"}}', id="bytes that are not UTF-8"),
        pytest.param(b'{"parameters":{"a":1,"a":2, "b" : [ ]}}', id="a key that is there twice, and spaces"),
        pytest.param(b"null", id="nothing"),
    ],
)
def test_the_parameters_of_a_driver_are_written_as_they_were_read(opaque: bytes) -> None:
    claim: ResourceClaim = Decoder(ResourceClaim).decode(CLAIM % opaque)
    (config,) = claim.spec.devices.config or ()
    entry = AllocatedConfiguration(source="FromClaim", opaque=config.opaque)
    allocation = Allocation(devices=DeviceAllocation(config=(entry,)))

    written = to_json({"status": {"allocation": allocation}})

    assert b'"config":[{"opaque":%b,"source":"FromClaim"}]' % opaque in written


def test_what_is_kept_of_a_page_is_a_copy() -> None:
    page = b"[%b]" % (CLAIM % b'{"driver":"d"}').ljust(10_000_000)
    (claim,) = Decoder[list[ResourceClaim]](list[ResourceClaim]).decode(page)
    (config,) = claim.spec.devices.config or ()

    assert bytes(config.opaque or b"") == b'{"driver":"d"}'
    assert len(memoryview(config.opaque).obj) < 100  # type: ignore[arg-type]  # a Raw has a buffer


def test_a_configuration_without_parameters_writes_none() -> None:
    assert to_json({"config": AllocatedConfiguration(source="FromClass")}) == b'{"config":{"source":"FromClass"}}'
