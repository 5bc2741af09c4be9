"""The version of Kubernetes that a kind cluster has: KUBERNETES=1.35 in the environment, otherwise our own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.controlplane.build import HERE, KUBE_SCHEDULER, KUBEADM, KUBECTL, KUBELET, KUBERNETES, Module, build

VARIABLE: Final = "KUBERNETES"


class VersionError(Exception):
    """The version that was asked for cannot be had."""


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """A version of Kubernetes and the modules from which it is built."""

    version: str
    """Such as v1.36.3."""
    modules: tuple[Module, ...]
    """Empty: its node image can only be pulled."""

    def binary(self, name: str) -> Path:
        """One of its programs, built first if need be. Raises BuildError."""
        module = next(module for module in self.modules if name in module.binaries)
        return build(module) / name

    def candidates(self) -> list[str]:
        """The tags of kindest/node to try, the newest first: kind publishes an image for some patch releases only."""
        minor, _, patch = self.version.rpartition(".")
        return [f"{minor}.{number}" for number in range(int(patch), -1, -1)]

    def covers(self, version: str) -> bool:
        """Whether a cluster with this version is what was asked for: a patch matters if one can only be pulled."""
        minor = self.version.rpartition(".")[0]
        return version == self.version or (bool(self.modules) and version.rpartition(".")[0] == minor)


def requested(environment: Mapping[str, str]) -> Kubernetes:
    """What the variable KUBERNETES asks for: 1.35, v1.35 or v1.35.x, of which the newest patch is ours to choose.

    Raises VersionError.
    """
    wanted = environment.get(VARIABLE) or KUBERNETES.version
    match = re.fullmatch(r"v?(1\.\d+)(\.(\d+|x))?", wanted)
    if match is None:
        raise VersionError(
            f"{VARIABLE}={wanted} is no version of Kubernetes; it should be like 1.35, v1.35.x or v1.35.2"
        )
    minor, patch = match[1], match[3]
    known = {version.rpartition(".")[0].removeprefix("v"): modules for version, modules in buildable().items()}
    if minor not in known:
        raise VersionError(f"{VARIABLE}={wanted}: known are {', '.join(sorted(known))}")
    modules = known[minor]
    version = modules[0].version
    if patch in (None, "x", version.rpartition(".")[2]):
        return Kubernetes(version, modules)
    return Kubernetes(f"v{minor}.{patch}", ())


def buildable() -> dict[str, tuple[Module, ...]]:
    """The versions for which there is a go.mod with all programs of a node, and their modules."""
    directories = [KUBERNETES.name, *(f"{KUBERNETES.name}/{path.parent.name}" for path in HERE.glob("k8s/*/go.mod"))]
    found = {}
    for name in directories:
        modules = tuple(
            replace(module, name=name) for module in (KUBERNETES, KUBECTL, KUBE_SCHEDULER, KUBELET, KUBEADM)
        )
        text = (modules[0].directory / "go.mod").read_text()
        if "k8s.io/kubernetes/cmd/kubeadm\n" in text:
            found[modules[0].version] = modules
    return found
