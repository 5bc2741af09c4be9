"""What can be said only after the other tests have run. The API server's audit log has all that was done."""

import json
import time
from datetime import datetime
from typing import Any

import pytest

from tests.controlplane import Client
from tests.node.release import Release
from tests.node.workloads import a_deployment, wait_running
from tests.realnode.node import RealNode

Call = dict[str, Any]

TOKEN_SECONDS = 600
POWERLESS = "system:serviceaccount:powerless:default"
"""Given no permission, by test_bad_input.py."""
LEEWAY_SECONDS = 60
"""For so long an API server accepts a token that has expired, as clocks differ."""


def calls(node: RealNode) -> list[Call]:
    """All calls of all schedulers, in the order in which they ended."""
    lines = [json.loads(line) for line in node.audit_log.read_text().splitlines()]
    return [line for line in lines if line.get("userAgent", "").startswith("loadmaster/")]


@pytest.mark.last
def test_scheduling_goes_on_after_the_first_token_has_expired(
    rotating: Release, node: RealNode, api: Client, namespace: str
) -> None:
    issued = next(call for call in calls(node) if is_of(rotating, call))
    age = time.time() - datetime.fromisoformat(issued["requestReceivedTimestamp"]).timestamp()
    time.sleep(max(0.0, TOKEN_SECONDS + LEEWAY_SECONDS + 5 - age))  # there is no shorter token and no other clock

    api.create(a_deployment("rotated", 3, scheduler="rotating"), namespace)
    wait_running(api, namespace, 3)

    bindings = [call for call in calls(node) if is_of(rotating, call) and call["verb"] == "create"]
    assert token_of(bindings[-1]) != token_of(issued)
    assert rotating.scheduler.metric("loadmaster_api_calls_total", code="401") == 0
    assert rotating.scheduler.restarts == 0


@pytest.mark.last
def test_no_call_of_a_scheduler_was_forbidden(node: RealNode) -> None:
    ours = calls(node)

    # Not by the status: 403 also says that a namespace is being deleted, whose pods a test has left to be placed.
    forbidden = {
        (call["user"]["username"], call["verb"], call["requestURI"].partition("?")[0])
        for call in ours
        if call["annotations"]["authorization.k8s.io/decision"] != "allow" and call["user"]["username"] != POWERLESS
    }

    assert len(ours) > 100
    assert forbidden == set()


def is_of(release: Release, call: Call) -> bool:
    """Whether a call was made by the account of this release."""
    username: str = call["user"]["username"]
    return username.startswith(f"system:serviceaccount:{release.name}:")


def token_of(call: Call) -> str:
    """Which token a call was made with."""
    (credential,) = call["user"]["extra"]["authentication.kubernetes.io/credential-id"]
    return str(credential)
