"""Attacks on decoders: what the API server passes on as it was written, and no decoder reads as it is."""

from collections.abc import Iterator
from typing import Final

import orjson

from tests.attacks.attack import Attack, Object, Target
from tests.controlplane import a_pod

LEVELS: Final = 9_000
"""Of nesting. The API server takes 10,000."""

PARAMETERS: Final = (
    b'{"a":' + b"[" * 4_900 + b"]" * 4_900 + b"}",
    rb'{"a":"\ud800"}',
    b'{"a":"\xff"}',
    b'{"a":12345678901234567890123}',
)


def managed_fields(_: Target) -> Iterator[Object]:
    fields = orjson.Fragment(b'{"f:a":' * LEVELS + b"{}" + b"}" * LEVELS)
    for pod in range(20):
        obj = a_pod(f"hostile-{pod}", cpu="1m", memory="1Mi")
        managed = {
            "manager": "x",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        obj["metadata"]["managedFields"] = [managed]
        yield obj


def claim_parameters(_: Target) -> Iterator[Object]:
    for number, parameters in enumerate(PARAMETERS):
        opaque = {"driver": "gpu.example.com", "parameters": orjson.Fragment(parameters)}
        request = {"name": "gpu", "exactly": {"deviceClassName": "none"}}
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": f"hostile-{number}"},
            "spec": {"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
        }
        claims = [{"name": "gpu", "resourceClaimName": f"hostile-{number}"}]
        yield a_pod(f"hostile-{number}", resourceClaims=claims)


ATTACKS: Final = (
    Attack("deep-managed-fields", "20 pods with 9,000 levels in what nobody reads of them.", managed_fields),
    Attack("odd-claim-parameters", "4 claims whose parameters are deep, not Unicode, or huge.", claim_parameters),
)
