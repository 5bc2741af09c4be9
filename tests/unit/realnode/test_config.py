"""The configuration of the node: what its parts read."""

import json
import tomllib
from pathlib import Path

import yaml

from tests.realnode import config
from tests.realnode.images import PAUSE

DIRECTORY = Path("/some/where")


def test_containerd_keeps_its_files_in_the_directory_and_pulls_nothing() -> None:
    parsed = tomllib.loads(config.containerd(DIRECTORY))

    assert parsed["root"] == "/some/where/containerd"
    assert parsed["plugins"]["io.containerd.grpc.v1.cri"]["sandbox_image"] == PAUSE


def test_pods_get_addresses_from_the_network_of_their_gateway() -> None:
    (plugin,) = json.loads(config.pod_network(DIRECTORY, "10.98.0.1"))["plugins"]

    assert plugin["ipam"]["ranges"] == [[{"subnet": "10.98.0.0/24", "gateway": "10.98.0.1"}]]


def test_the_kubelet_works_in_the_group_that_was_made_for_it() -> None:
    parsed = yaml.safe_load(config.kubelet(DIRECTORY, "loadmaster-node-1"))

    assert (parsed["kind"], parsed["cgroupRoot"]) == ("KubeletConfiguration", "/loadmaster-node-1")
    assert {value for key, value in parsed.items() if key.endswith("Dir")} == {
        "/some/where/pod-logs",
        "/some/where/volume-plugins",
    }
