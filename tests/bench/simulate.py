"""How long `loadmaster simulate` takes over a large dump, and how much memory: `python -m tests.bench.simulate`.

The dump is what `kubectl get nodes,pods -A` prints of a cluster with 5,000 nodes and 20,000 pods, 400 of which wait:
every field that the API server, the kubelet and the controllers fill in is there. It is made once, under `build/bench`.
Each case is a process of its own. Printed are the seconds of CPU that it takes, which is how long it runs where the
machine has nothing else to do, as it has one thread, and the most memory that it had. Exit code 1: one is above
its aim.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.sizing.objects import PODS_OF_AN_APP, Object, Size, app_name, namespace, node, node_name, pod_of, uid
from tests.sizing.store import stored

NODES: Final = 5000
PODS: Final = 20_000
PENDING: Final = 400
URGENT: Final = 900
IMAGES: Final = 10
"""On a node."""

FOLDER: Final = Path("build/bench/simulate")
MIB: Final = 1 << 20
SIZE: Final = Size(NODES, PODS)
SPREAD_POD: Final = "{namespace}/{name}".format(**pod_of(3, "00000", "")["metadata"])


class Case(NamedTuple):
    """A run, and what it may take."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    mebibytes: float


CASES: Final = (
    Case("json", ("cluster.json",), 6, 700),
    Case("yaml", ("cluster.yaml",), 30, 1000),
    Case("explain", ("cluster.json", "--explain", "-o", "json"), 16, 1100),
    Case("copies", ("cluster.json", "--of", SPREAD_POD, "--count", "10000", "-o", "json"), 15, 700),
    Case("preempt", ("cluster.json", "urgent.json"), 18, 700),
    Case("drain", ("cluster.json", *(f"--drain={node_name(number)}" for number in range(100))), 8, 700),
)


def objects() -> Iterator[Object]:
    """All of them, in kubectl's order: the nodes, and the pods, of which the last ones wait."""
    for number in range(NODES):
        made = node(number)
        made["status"]["images"] = made["status"]["images"][:IMAGES]
        yield _as_printed(made, uid("Node", number))
    for number in range(PODS):
        is_pending = number >= PODS - PENDING
        pod = pod_of(number // PODS_OF_AN_APP, f"{number:05d}", "") if is_pending else SIZE.running_pod(number)
        if is_pending:
            pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
            if number % 2:
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
        yield _as_printed(pod, uid("Pod", number))


def _as_printed(obj: Object, its_uid: str) -> Object:
    """As kubectl prints it: without who manages fields, and nothing shared, which YAML would write as an alias."""
    whole: Object = json.loads(json.dumps(stored(obj, its_uid, 1000)))
    del whole["metadata"]["managedFields"]
    return whole


def urgent() -> Iterator[Object]:
    """Pods that fit nowhere unless others go, and budgets for every third application that runs."""
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    for number in range(0, SIZE.apps, 3):
        app = app_name(number)
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": namespace(number)},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": 1},
        }
    for number in range(URGENT):
        container = {"name": "main", "image": "urgent", "resources": {"requests": {"cpu": "31500m"}}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"urgent-{number}", "namespace": "default"},
            "spec": {"priorityClassName": "urgent", "containers": [container]},
        }


def write_dumps(folder: Path) -> None:
    """Write `cluster.json` and `cluster.yaml` as kubectl does, object by object: all at once would take 2 GB."""
    folder.mkdir(parents=True, exist_ok=True)
    end = {"kind": "List", "metadata": {"resourceVersion": ""}}
    (folder / "urgent.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*urgent()]}))
    with (folder / "cluster.json").open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, obj in enumerate(objects()):
            text = json.dumps(obj, indent=4).replace("\n", "\n        ")
            file.write((",\n" if number else "") + "        " + text)
        file.write("\n    ],\n" + json.dumps(end, indent=4)[2:] + "\n")
    with (folder / "cluster.yaml").open("w") as file:
        file.write("apiVersion: v1\nitems:\n")
        for obj in objects():
            text = yaml.dump(obj, Dumper=yaml.CSafeDumper, width=10_000)
            file.write("- " + text.rstrip("\n").replace("\n", "\n  ") + "\n")
        file.write(yaml.dump(end, Dumper=yaml.CSafeDumper))


def run(case: Case, folder: Path) -> tuple[float, float]:
    """Seconds of CPU, and the most memory in MiB. Raises SystemExit if the run fails."""
    command = [sys.executable, "-m", "scheduler", "simulate", *case.arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{case.name}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MIB


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulate", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    options = parser.parse_args()
    if not all((FOLDER / name).exists() for name in ("cluster.yaml", "urgent.json")):
        write_dumps(FOLDER)
    is_missed = False
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        seconds, mebibytes = run(case, FOLDER)
        is_missed |= seconds > case.seconds or mebibytes > case.mebibytes
        print(
            f"{case.name:8} {seconds:6.1f} s (aim {case.seconds:g}) {mebibytes:6.0f} MiB (aim {case.mebibytes:g})",
            flush=True,
        )
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
