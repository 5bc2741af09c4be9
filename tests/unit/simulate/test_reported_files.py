"""Files as people have them, from kubectl and Helm and by hand, and what a simulation answers."""

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from scheduler.__main__ import main

FOLDER: Final = Path(__file__).parent / "reported"


class Reported(NamedTuple):
    """Files, and the answer."""

    files: str
    code: int
    out: str
    """The first line."""

    err: tuple[str, ...] = ()
    """How each line on standard error ends."""


def accepted(files: str, out: str, *err: str) -> Reported:
    return Reported(files, 0, out, err)


def nothing(files: str, *err: str) -> Reported:
    """There are no pods to place."""
    return Reported(files, 3, "nothing to place", err)


def refused(files: str, *err: str) -> Reported:
    return Reported(files, 2, "", err)


OF_OTHERS: Final = (
    "left out 2 waiting pods of other schedulers: somebody-else; a --config with a profile of that name places them"
)
NEVER: Final = "which cannot be overcommitted"
SIMULATED: Final = (
    accepted(
        "immediate.yaml",
        "3 of 3 pods placed",
        "bound to new volumes that every node can use: 3 claims of class blocks; in a cluster their provisioner "
        "also chooses where they are",
    ),
    Reported(
        "class-missing.yaml",
        3,
        "0 of 3 pods placed",
        ("StorageClass blocks, named by 3 claims: they stay unbound, and their pods wait",),
    ),
    accepted(
        "web2.yaml web2-again.yaml",
        "4 of 4 pods placed",
        "web2-again.yaml:1: Deployment web replaces that of web2.yaml:1",
    ),
    nothing("other-scheduler.yaml", OF_OTHERS),
    nothing(
        "old-dra.yaml",
        "not serve: Deployment is apps/v1: 1 Deployment (extensions/v1beta1)",
        "not serve: PodDisruptionBudget is policy/v1: 1 PodDisruptionBudget (policy/v1beta1)",
        "not serve: ResourceSlice is resource.k8s.io/v1: 1 ResourceSlice (resource.k8s.io/v1beta1)",
    ),
    nothing(
        "misspelled-kinds.yaml",
        "left out objects of a kind that does not exist: it is Deployment: 1 deployment (apps/v1)",
        "left out objects with no apiVersion, or v1: Deployment is apps/v1: 1 Deployment",
    ),
    accepted("jobset.yaml", "4 of 4 pods placed"),
    nothing(
        "rollout.yaml",
        "of kinds whose pods only their own controller could make: 1 Rollout (argoproj.io/v1alpha1)",
    ),
    nothing(
        "template-with-node.yaml",
        "template-with-node.yaml:1: Deployment web: its template names the node node-1: no scheduler places its 2 "
        "pods, and they count as running there",
    ),
    accepted("helm-floats.yaml", "2 of 2 pods placed"),
    accepted("amounts-in-spaces.yaml", "1 of 1 pods placed"),
    refused(
        "gpu.yaml",
        'gpu.yaml:4: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "0.5": must be an integer',
        "gpu.yaml:9: spec.containers[0].resources.limits: "
        f"Required value: a limit must be set for nvidia.com/gpu, {NEVER}",
        "gpu.yaml:14: spec.containers[0].resources.requests: "
        "Invalid value: 1: must be equal to nvidia.com/gpu limit of 2",
        "gpu.yaml:19: spec.containers[0].resources.limits[gpu]: "
        'Invalid value: "gpu": must be a standard resource for containers, or fully qualified: example.com/gpu',
        "gpu.yaml:24: spec.containers[0].resources.limits: "
        f"Required value: a limit must be set for hugepages-2Mi, {NEVER}",
        "gpu.yaml:24: spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
    ),
    refused("env-bool.yaml", "env-bool.yaml:4: spec.containers[0].env[0].value: expected str, got bool"),
    refused(
        "patch-directives.yaml",
        "patch-directives.yaml:5: spec.containers[0].env[0].$patch: unknown field: a directive, which only a patch "
        "may have",
        "patch-directives.yaml:6: spec.$patch: unknown field: a directive, which only a patch may have",
    ),
)

CONFIGURATIONS: Final = (
    accepted(
        "config-floats.yaml",
        "config-floats.yaml: valid; profiles: x",
        "clientConnection.burst has no effect: requests are not limited here, but by the API server's priority and "
        "fairness",
    ),
    refused(
        "coscheduling-upstream.yaml",
        'coscheduling-upstream.yaml:7: profiles[0].plugins.queueSort.enabled[0]: Invalid value: "Coscheduling": '
        "this plugin does not extend queueSort here, and need not: leave out plugins.queueSort, with what it disables",
    ),
    accepted("two-configurations.yaml", "two-configurations.yaml: valid; profiles: a"),
)


@pytest.mark.parametrize("case", [*SIMULATED, *CONFIGURATIONS], ids=lambda case: case.files)
def test_a_reported_file_is_answered(
    case: Reported, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER)
    simulating = ["simulate", "--fail-if-pending", "cluster.yaml"]

    code = main([*(["config", "check"] if case in CONFIGURATIONS else simulating), *case.files.split()])

    out, err = capsys.readouterr()
    assert (code, out.partition("\n")[0]) == (case.code, case.out)
    assert [line[-len(end) :] for line, end in zip(err.splitlines(), case.err, strict=True)] == list(case.err)


def test_every_reported_file_is_in_a_table() -> None:
    named = {name for case in (*SIMULATED, *CONFIGURATIONS) for name in case.files.split()}

    assert {path.name for path in FOLDER.iterdir()} - {"cluster.yaml"} == named


def test_a_directory_may_have_files_that_are_no_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.yaml").write_text((FOLDER / "cluster.yaml").read_text())
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "empty.yaml").write_text("# {{ if .Values.off }}\n")
    (tmp_path / "web.yaml").write_text((FOLDER / "web2.yaml").read_text())

    assert main(["simulate", str(tmp_path)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("2 of 2 pods placed\n")
    assert err.replace(f"{tmp_path}/", "").splitlines() == [
        "empty.yaml: there is nothing in it",
        "values.yaml:1: left out: not a Kubernetes object: it has no kind",
    ]


@pytest.mark.parametrize("text", ["replicas: 3\n", "# nothing\n"])
def test_a_file_that_is_named_must_have_objects(text: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(text)

    assert main(["simulate", str(path)]) == 2


def test_new_pods_of_other_schedulers_fail_beside_pods_that_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    command = ["simulate", "cluster.yaml", "env-bool.yaml", "other-scheduler.yaml", "--allow-unknown-fields"]

    assert main(command) == 0
    assert main([*command, "--fail-if-pending"]) == 3
