import json
import os
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.kind import components, earlier_image, engine, requirements
from tests.kind.__main__ import main
from tests.kind.archive import Image, write
from tests.kind.cluster import NAME, NODES, ZONES, configuration
from tests.kind.engine import Engine, RefusedError
from tests.kind.kubernetes import VersionError, requested
from tests.kind.runc_within_bounds import bounding_set, narrow_specification, narrowed

STATUS = "Name:\tcat\nCapEff:\t0000000000000003\nCapBnd:\t0000000000000005\n"


def test_the_cluster_is_the_one_that_users_get_from_deploy() -> None:
    config = configuration(cgroup_v1=False, withheld=frozenset())

    assert config["name"] == NAME
    assert len(config["nodes"]) == len(NODES)
    assert tuple(node["labels"]["topology.kubernetes.io/zone"] for node in config["nodes"]) == ZONES
    assert "containerdConfigPatches" not in config


def test_a_machine_with_old_control_groups_and_few_capabilities_gets_what_it_needs() -> None:
    config = configuration(cgroup_v1=True, withheld={"CAP_SYS_RESOURCE"})

    assert {"kind": "KubeletConfiguration", "failCgroupV1": False} in map(
        yaml.safe_load, config["kubeadmConfigPatches"]
    )
    assert "restrict_oom_score_adj = true" in config["containerdConfigPatches"][0]


def test_the_bounding_set_is_read_from_the_kernel_s_mask() -> None:
    assert bounding_set(STATUS) == {"CAP_CHOWN", "CAP_DAC_READ_SEARCH"}


def test_only_the_capabilities_that_are_withheld_are_left_out() -> None:
    process = {"args": ["sh"], "capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "ambient": None}}

    assert narrowed(process, {"CAP_SYS_RESOURCE"}) == {
        "args": ["sh"],
        "capabilities": {"bounding": ["CAP_CHOWN"], "ambient": []},
    }


def test_a_container_s_specification_keeps_everything_else(tmp_path: Path) -> None:
    specification = {"process": {"args": ["sh"], "capabilities": {}}, "root": {"path": "rootfs"}}
    (tmp_path / "config.json").write_text(json.dumps(specification))

    narrow_specification(["--log", "x", "create", "--bundle", str(tmp_path), "name"])

    assert json.loads((tmp_path / "config.json").read_text()) == specification


@pytest.mark.parametrize("wanted", ["1.35", "v1.35", "v1.35.x"])
def test_a_minor_version_is_built_as_its_newest_patch(wanted: str) -> None:
    found = requested({"KUBERNETES": wanted})

    assert found.version.startswith("v1.35.")
    assert {*components.COMPONENTS, "kubelet", "kubeadm"} <= {name for each in found.modules for name in each.binaries}
    assert found.candidates()[0] == found.version
    assert found.candidates()[-1] == "v1.35.0"
    assert found.covers("v1.35.0")
    assert not found.covers("v1.36.0")


def test_a_patch_that_is_not_ours_can_only_be_pulled() -> None:
    found = requested({"KUBERNETES": "v1.35.0"})

    assert (found.version, found.modules) == ("v1.35.0", ())
    assert not found.covers("v1.35.1")


@pytest.mark.parametrize("wanted", ["latest", "1.20", "2.0", "1.35.x.y"])
def test_a_version_that_cannot_be_had_is_refused_by_its_name(wanted: str) -> None:
    with pytest.raises(VersionError, match=f"KUBERNETES={wanted}"):
        requested({"KUBERNETES": wanted})


def test_a_constant_of_go_is_put_together_from_its_parts() -> None:
    source = 'const tag = "a"\n\nconst manifest = `\nimage: ` + tag + `\nargs: [` + tag + `]\n`\n\nvar x = 1\n'

    assert components.go_constant(source, "manifest", {"tag": "b"}) == "\nimage: b\nargs: [b]\n"


def test_images_share_the_layer_below(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / "base.tar", "w") as base:
        base.add(tmp_path / "one", "etc/one")
    images = [
        Image((f"{name}:1",), {f"/usr/bin/{name}": tmp_path / name}, base=tmp_path / "base.tar", entrypoint=(name,))
        for name in ("one", "two")
    ]

    write(tmp_path / "images.tar", images, tmp_path)

    with tarfile.open(tmp_path / "images.tar") as archive:
        names = archive.getnames()
        manifest = archive.extractfile("manifest.json")
        assert manifest
        index = json.load(manifest)
    assert [image["RepoTags"] for image in index] == [["one:1"], ["two:1"]]
    assert index[0]["Layers"][0] == index[1]["Layers"][0]
    assert len([name for name in names if name.endswith("layer.tar")]) == 3


def test_an_engine_that_answers_is_enough() -> None:
    assert requirements.missing(find=lambda: object(), can_start=lambda: False) == []


def test_without_an_engine_it_is_said_how_to_get_one() -> None:
    (line,) = requirements.missing(find=lambda: None, can_start=lambda: False, which=lambda _: None)

    assert "make kind-deps" in line


def program(path: Path, says: str) -> None:
    """Make a program that fails with a message."""
    path.write_text(f"#!/bin/sh\necho {says} >&2\nexit 125\n")
    path.chmod(0o755)


def test_an_engine_that_refuses_privileged_containers_is_no_failure_of_ours(tmp_path: Path) -> None:
    program(tmp_path / "docker", "privileged mode is disabled")

    with pytest.raises(RefusedError, match="privileged mode is disabled"):
        Engine(str(tmp_path / "docker")).check_privileged("node")


def test_an_engine_that_does_not_start_is_no_failure_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "docker", "no daemon")
    program(tmp_path / "dockerd", "cannot mount overlay")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(RefusedError, match=r"dockerd does not start.*\ncannot mount overlay"):
        engine.start(tmp_path / "own")


def test_without_an_engine_the_tests_are_skipped_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    code = main(["test"])

    assert code == 0
    assert capsys.readouterr().err.startswith("Skipped: no kind cluster can run here. Missing:")


def test_a_commit_that_the_history_has_not_is_named() -> None:
    not_here = pytest.raises(earlier_image.NoHistoryError, match=r"0{40}|no git|not a git repository")

    with not_here, earlier_image.source("0" * 40):
        pass
