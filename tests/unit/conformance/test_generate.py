from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.generate import generate
from tests.conformance.generators.topic import containers

SEEDS = range(300)


def pods(seed: int) -> Iterator[dict[str, Any]]:
    yield from (thing for thing in generate(seed)["objects"] if thing["kind"] == "Pod")


def test_a_seed_always_makes_the_same_case() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


@pytest.mark.parametrize("field", ["nodeSelector", "affinity", "tolerations", "overhead", "resources", "hostNetwork"])
def test_a_field_is_set_in_some_pods_only(field: str) -> None:
    set_in = [field in pod["spec"] for seed in SEEDS for pod in pods(seed)]

    assert 0.01 < sum(set_in) / len(set_in) < 0.6


def test_every_limit_has_a_request_as_after_the_api_servers_defaulting() -> None:
    for seed in SEEDS:
        for pod in pods(seed):
            for container in containers(pod):
                resources = container.get("resources", {})
                assert resources.get("limits", {}).keys() <= resources.get("requests", {}).keys()


def test_uids_are_unique() -> None:
    for seed in SEEDS:
        uids = [pod["metadata"]["uid"] for pod in pods(seed)]
        assert len(uids) == len(set(uids))
