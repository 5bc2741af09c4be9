"""The installation that holds the Lease, which a leader writes into an annotation, next to its identity.

The identity has the pod's name only, which does not distinguish two installations in different namespaces, nor an
old version from a new one. Other leaders, also older ones of ours, keep the annotation, so it has the identity, too.
"""

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.kube.identity.identity import SERVICE_ACCOUNT, namespace_in
from scheduler.kube.versions import MAX_APART, distance

ANNOTATION: Final = "loadmaster/leader"

_POD: Final = re.compile(r"([a-z0-9][a-z0-9.-]*)-[a-z0-9]{4,10}-[a-z0-9]{5}", re.ASCII)
"""A Deployment's pod: its name, the hash of its template, five characters."""


class Leader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holder of the Lease."""

    identity: str = ""
    installation: str = ""
    """`namespace/deployment`; empty if unknown."""
    version: str = ""
    """Of Loadmaster; empty before 0.2.0, which was the first to write it."""

    @property
    def host(self) -> str:
        """The part of the identity that people know, a pod's name mostly."""
        return self.identity.partition("_")[0]


def ourselves(identity: str, directory: Path = SERVICE_ACCOUNT) -> Leader:
    """`directory`: with the namespace of our pod, if we are in one."""
    namespace, deployment = namespace_in(directory), deployment_of(identity.partition("_")[0])
    installation = f"{namespace}/{deployment}" if namespace and deployment else ""
    return Leader(identity, installation, version("loadmaster"))


def annotations_of(leader: Leader) -> dict[str, str]:
    """The annotations of a Lease that this one holds."""
    return {ANNOTATION: msgspec.json.encode(leader).decode()}


def strangers(leader: Leader, us: Leader) -> str:
    """Say why the holder of the Lease should not be together with us; empty if nothing is wrong."""
    theirs = leader.installation or deployment_of(leader.host)
    ours = us.installation if leader.installation else deployment_of(us.host)
    if theirs and ours and theirs != ours:
        return (
            f"the Lease is held by {leader.host} of {theirs}, another installation than this one, {ours}: only one of "
            "the two works; give each a Lease of its own, leaderElection.resourceName"
        )
    if distance(leader.version, us.version) > MAX_APART:
        return (
            f"the Lease is held by {leader.host} of version {leader.version}, more than one minor version from "
            f"this one, {us.version}: that is not tested; upgrade one minor version after the other"
        )
    return ""


def leader_of(identity: str, annotations: Mapping[str, object]) -> Leader:
    """The holder of a Lease with these annotations."""
    text = annotations.get(ANNOTATION)
    try:
        written = _decoder.decode(text.encode()) if isinstance(text, str) else Leader()
    except (Unreadable, UnicodeEncodeError):
        written = Leader()
    return written if written.identity == identity else Leader(identity)


def deployment_of(host: str) -> str:
    """The Deployment whose pod has this name; empty if it is no such name."""
    match = _POD.fullmatch(host)
    return match[1] if match else ""


_decoder: Final[Decoder[Leader]] = Decoder(Leader)
