"""The annotation by which a leader says of which installation and version it is."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from scheduler.kube.election.installation import (
    ANNOTATION,
    Leader,
    annotations_of,
    deployment_of,
    leader_of,
    ourselves,
    strangers,
)
from scheduler.kube.election.lease import Lease

POD = "loadmaster-7d4b9c6f5d-abcde"
US = Leader(f"{POD}_1", "kube-system/loadmaster", "0.4.0")


def test_a_pod_writes_its_namespace_its_deployment_and_its_version(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("kube-system\n")

    written = annotations_of(ourselves(f"{POD}_1", tmp_path))

    expected = Leader(f"{POD}_1", "kube-system/loadmaster", version("loadmaster"))
    assert leader_of(f"{POD}_1", written) == expected


def test_outside_of_a_pod_there_is_no_installation(tmp_path: Path) -> None:
    assert ourselves("laptop_1", tmp_path) == Leader("laptop_1", version=version("loadmaster"))


@pytest.mark.parametrize(
    ("host", "deployment"),
    [
        (POD, "loadmaster"),
        ("a.b-c-5d4b9c6f5d-zzzzz", "a.b-c"),
        ("laptop", ""),
        ("node-1", ""),
        ("", ""),
        ("x" * 5000, ""),
    ],
)
def test_the_name_of_a_pod_has_its_deployments(host: str, deployment: str) -> None:
    assert deployment_of(host) == deployment


@pytest.mark.parametrize(
    "annotation",
    [None, 7, "", "{", "[]", "null", '{"identity": 7}', '{"identity": "another_1", "version": "9.9.9"}', "\ud800"],
)
def test_an_annotation_that_is_none_or_of_an_earlier_leader_says_nothing(annotation: Any) -> None:
    assert leader_of("a_1", {ANNOTATION: annotation}) == Leader("a_1")


@pytest.mark.parametrize(
    ("leader", "said"),
    [
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2", "kube-system/loadmaster", "0.4.1"), ""),
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2", "kube-system/loadmaster", "0.3.0"), ""),
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2", "kube-system/loadmaster", "0.2.0"), "of version 0.2.0, more than one"),
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2", "kube-system/loadmaster", "0.6.0"), "of version 0.6.0, more than one"),
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2", "ml/loadmaster", "0.4.0"), "of ml/loadmaster, another installation"),
        (Leader("gpu-5d4b9c6f5d-zzzzz_2"), "of gpu, another installation than this one, loadmaster"),
        (Leader("loadmaster-5d4b9c6f5d-zzzzz_2"), ""),
        (Leader("laptop_2"), ""),
        (Leader(""), ""),
    ],
)
def test_a_leader_that_should_not_be_together_with_us_is_named(leader: Leader, said: str) -> None:
    problem = strangers(leader, US)

    assert said in problem
    assert bool(problem) == bool(said)


def test_annotations_of_others_are_kept() -> None:
    lease = Lease({"metadata": {"resourceVersion": "1", "annotations": {"theirs": "1", ANNOTATION: "old"}}})

    updated = Lease.decode(lease.with_spec({ANNOTATION: "new"}, holderIdentity="a"))

    assert updated.annotations == {"theirs": "1", ANNOTATION: "new"}
    assert updated.holder == "a"
