"""Edits of kube-scheduler's files, with which the oracle is built: a module for each minor version.

`MENDED` is in every build: faults that Loadmaster does not copy, each with its row in docs/differences.md.

`BY_NAME` is in the build for pod groups only, and leaves nothing to chance there. In a pod group cycle one choice
follows from another: which of two equal nodes the first member gets decides what is left for the second. So equals
cannot be compared afterwards, as for a single pod; here the smallest name wins wherever kube-scheduler draws lots or
goes by the order of a Go map. Two faults of 1.36 are mended there, too, for what comes of them depends on where other
pods happen to be: the snapshot of a cycle does not know of the affinity terms of members that are assumed on nodes
without any; and a group of victims has the start time of the pod that is met first, not of the one that started first.
"""

from typing import Final

from tests.conformance.edits import v1_36, v1_37
from tests.conformance.edits.files import Edits, both

_OF: Final = {"1.36": v1_36, "1.37": v1_37}


def edits_of(kind: str, minor: str) -> Edits:
    """Return the edits of a build of the oracle of a minor version."""
    of = _OF[minor]
    return of.MENDED if kind == "oracle" else both(of.MENDED, of.BY_NAME)
