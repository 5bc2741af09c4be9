"""The control planes that the tests run on: each version, and those that our own version emulates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.controlplane.build import KUBERNETES, in_version
from tests.controlplane.versions import EMULATED, EMULATION, OWN, VARIABLE, VERSIONS

NOT_OURS: Final = ("KUBEBUILDER_ASSETS", "LOADMASTER_CLUSTER", VARIABLE, EMULATION)
"""Variables of the caller's that would choose another control plane."""


@dataclass(frozen=True, slots=True)
class Target:
    """One column of the table."""

    name: str
    """Such as 1.34, or 1.34-emulated."""
    built: str
    """The version that is built for it."""
    emulated: str = ""

    @property
    def title(self) -> str:
        """Such as 1.34.4, or `1.34, emulated`."""
        return f"{self.emulated}, emulated" if self.emulated else patch_of(self.built)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The variables with which tests take this control plane."""
        rest = {name: value for name, value in given.items() if name not in NOT_OURS}
        return rest | {VARIABLE: self.built} | ({EMULATION: self.emulated} if self.emulated else {})


def patch_of(version: str) -> str:
    """Such as 1.34.4."""
    return in_version(KUBERNETES, version).version.removeprefix("v")


TARGETS: Final = {
    target.name: target
    for target in (
        *(Target(f"{version}-emulated", OWN, version) for version in EMULATED),
        *(Target(version, version) for version in VERSIONS),
    )
}
