"""VolumeBinding's obstacles: the claims that they are about, with their classes and volumes."""

from collections.abc import Iterator
from shlex import quote
from typing import Final

import msgspec
import numpy as np

from plugins.shared.node_selector_obstacles import spelled_requirement
from plugins.volumes.assume import AssumeCache
from plugins.volumes.claims import PodVolumeClaims
from plugins.volumes.finding import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING, VolumeFinder
from scheduler import framework as fw
from scheduler.api.storage.volumes import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim

MAX_TERMS: Final = 3
"""The number of terms of a volume's node affinity that are written out."""


def unbound_obstacles(claims: PodVolumeClaims) -> Iterator[fw.Obstacle]:
    """Yield the claims that others have to bind first."""
    for claim in claims.unbound_immediate:
        if claim.spec.volume_name:
            yield fw.Obstacle(f"claim {claim.name} is not bound to its volume {claim.spec.volume_name} yet")
        elif claim.class_name:
            yield fw.Obstacle(f"claim {claim.name} of class {claim.class_name} is not bound")
        else:
            yield fw.Obstacle(f"claim {claim.name} is not bound, and it has no class that would make a volume for it")


def claim_obstacles(
    claims: PodVolumeClaims,
    finder: VolumeFinder,
    volumes: AssumeCache[PersistentVolume],
    nodes: fw.NodeColumns,
    node: fw.NodeInfo,
) -> Iterator[fw.Obstacle]:
    """Yield the claims that cannot be used on a node; none if each of them could be, without the others."""
    rows = np.array([node.row])
    for claim in claims.bound:
        code = _code(finder, PodVolumeClaims(bound=[claim]), nodes, rows)
        if code & VOLUME_MISSING:
            yield fw.Obstacle(
                f"claim {claim.name} is bound to the volume {claim.spec.volume_name}, which does not exist"
            )
        elif code & NODE_CONFLICT:
            where = _place_of(volumes.get(claim.spec.volume_name))
            yield fw.Obstacle(f"volume {claim.spec.volume_name} of claim {claim.name} {where}")
    for claim in claims.unbound_delayed:
        code = _code(finder, PodVolumeClaims(unbound_delayed=[claim]), nodes, rows)
        if code & BIND_CONFLICT:
            yield _no_volume(claim, nodes)
        elif code & NOT_ENOUGH_SPACE:
            yield fw.Obstacle(f"too little free storage of class {claim.class_name} for claim {claim.name}")


def _code(finder: VolumeFinder, claims: PodVolumeClaims, nodes: fw.NodeColumns, rows: fw.Rows) -> int:
    codes, _ = finder.refusals(claims, nodes, rows)
    return 0 if codes is None else int(codes[0])


def _no_volume(claim: PersistentVolumeClaim, nodes: fw.NodeColumns) -> fw.Obstacle:
    selected = claim.annotations.get(SELECTED_NODE)
    if not selected:
        what = f"no volume of class {claim.class_name} for claim {claim.name}, and none can be made for the node"
        return fw.Obstacle(what)
    if nodes.row_of(selected) is not None:
        return fw.Obstacle(f"claim {claim.name} gets a volume for the node {selected}")
    annotations = {key: value for key, value in claim.annotations.items() if key != SELECTED_NODE}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    command = f"kubectl annotate pvc --namespace {quote(claim.namespace)} {quote(claim.name)} {SELECTED_NODE}-"
    text = f"remove the annotation {SELECTED_NODE} from claim {claim.name}"
    objects = ((fw.PERSISTENT_VOLUME_CLAIM, msgspec.structs.replace(claim, metadata=metadata)),)
    fact = f"claim {claim.name} is to get a volume for the node {selected}, which does not exist"
    return fw.Obstacle(fact, (fw.Remedy(text, (), command, objects=objects),))


def _place_of(volume: PersistentVolume | None) -> str:
    affinity = volume.spec.node_affinity if volume is not None else None
    required = affinity.required if affinity is not None else None
    terms = (required.node_selector_terms or ())[:MAX_TERMS] if required is not None else ()
    wanted = " or ".join(
        " and ".join(map(spelled_requirement, (*(term.match_expressions or ()), *(term.match_fields or ()))))
        for term in terms
    )
    return f"can be reached from nodes with {wanted} only" if wanted else "cannot be reached from the node"
