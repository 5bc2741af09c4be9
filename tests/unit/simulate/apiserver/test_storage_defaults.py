"""Volumes and classes in files may leave out what the cluster would fill in."""

from typing import Any

import pytest

from scheduler.simulate.apiserver.storage_defaults import with_storage_defaults


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ({"kind": "StorageClass"}, {"volumeBindingMode": "Immediate"}),
        ({"kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}, {}),
        ({"kind": "PersistentVolume", "spec": {}}, {"status": {"phase": "Available"}}),
        ({"kind": "PersistentVolume", "spec": None, "status": None}, {"status": {"phase": "Available"}}),
        ({"kind": "PersistentVolume", "spec": {"claimRef": {"name": "data"}}}, {"status": {"phase": "Bound"}}),
        ({"kind": "PersistentVolume", "status": {"phase": "Released"}}, {}),
        ({"kind": "Service"}, {}),
    ],
)
def test_what_is_left_out_is_filled_in(written: dict[str, Any], completed: dict[str, Any]) -> None:
    assert with_storage_defaults(written) == written | completed
