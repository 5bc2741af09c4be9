"""Kubernetes' own specs of [sig-scheduling], run by the program that is built from its module."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import yaml

from tests.controlplane import Cluster
from tests.controlplane.build import find_binaries

LEFT_OUT: Final = Path(__file__).with_name("left_out_specs.yaml")
SIG: Final = "[sig-scheduling]"
SECONDS: Final = 900
"""For all of them, one after the other."""


@dataclass(frozen=True, slots=True)
class Results:
    """How a run ended."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    """The name of each, and what it said."""
    skipped: tuple[str, ...]
    """That decided for themselves that this cluster is not theirs."""
    seconds: dict[str, float]


def names() -> list[str]:
    """All specs of the program that are about scheduling."""
    command = [str(find_binaries(["e2e.test"])["e2e.test"]), "--list-tests"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [f"{SIG} {line.partition(f'{SIG} ')[2]}" for line in listed.splitlines() if f"{SIG} " in line]


def left_out() -> dict[str, str]:
    """Name and reason of each spec that is not run."""
    reasons: dict[str, str] = yaml.safe_load(LEFT_OUT.read_text())
    return reasons


def run(cluster: Cluster, directory: Path) -> Results:
    """Run all that are not left out; `directory` is for the report and the log."""
    command = [
        str(find_binaries(["e2e.test"])["e2e.test"]),
        f"--kubeconfig={cluster.kubeconfig()}",
        f"--kubectl-path={cluster.kubectl_binary}",
        "--provider=skeleton",
        f"--report-dir={directory}",
        f"--ginkgo.focus={re.escape(SIG)}",
        *(f"--ginkgo.skip={re.escape(name)}" for name in left_out()),
        "--ginkgo.seed=1",
        "--ginkgo.no-color",
        "--ginkgo.v",
    ]
    with (directory / "e2e.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=log, timeout=SECONDS, check=False)
    return read_report(next(directory.glob("junit*.xml")))


def read_report(path: Path) -> Results:
    """What the report in JUnit's format says of the specs that were to run."""
    passed: list[str] = []
    failed: list[str] = []
    skipped: list[str] = []
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name", "").removeprefix("[It] ")
        said = " ".join(str(each.get("message")) for each in case if each.tag in ("skipped", "failure", "error"))
        status = case.get("status")
        if not name.startswith(SIG) or said == "skipped":  # it was not to run
            continue
        if status == "passed":
            passed.append(name)
            seconds[name] = float(case.get("time", "0"))
        else:
            (skipped if status == "skipped" else failed).append(f"{name}: {said}")
    return Results(tuple(passed), tuple(failed), tuple(skipped), seconds)
