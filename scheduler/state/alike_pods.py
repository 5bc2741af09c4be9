"""Pods that no selector distinguishes, counted together: same namespace, same labels, both being deleted or not."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypeAlias

import msgspec
import numpy as np

from scheduler.api.objects import labels_of
from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.columns import Int32Column
from scheduler.framework.pods import PodMatch
from scheduler.state.nodes.count_columns import CountColumn

GroupKey: TypeAlias = tuple[str | bool, ...]
"""Within a namespace: being deleted or not, the label keys, the label values. Flat, since there may be one per pod."""


class AlikePods(msgspec.Struct, eq=False, gc=False):
    """One group. It refers to columns, which refer to nothing, so the garbage collector need not track it."""

    labels: Mapping[str, str]
    is_deleting: bool
    rows: dict[int, int]
    """Row → number of its pods there; never 0."""
    columns: tuple[CountColumn, ...] = ()
    """The columns in which its pods are counted: those of the matches that it fulfils."""


def group_key(pod: Pod) -> GroupKey:
    """Return the key of the pod's group within its namespace."""
    metadata = pod.metadata
    labels = labels_of(metadata)
    # The API server sends labels sorted by key; another order only costs one more group.
    if labels:
        return (metadata.deletion_timestamp is not None, *labels, *labels.values())
    return (metadata.deletion_timestamp is not None,)


def fulfils(match: PodMatch, namespace: str, group: AlikePods) -> bool:
    """Return whether the pods of a group match."""
    if group.is_deleting and match.alive_only:
        return False
    return (match.namespaces is None or namespace in match.namespaces) and match.selector.matches(group.labels)


def add_up(groups: Iterable[AlikePods], counts: Int32Column) -> None:
    """Add to `counts` how many pods of the groups are on each row."""
    by_row = [group.rows for group in groups]
    if not by_row:
        return
    size = sum(map(len, by_row))
    rows = np.fromiter(chain.from_iterable(by_row), np.intp, size)
    pods = np.fromiter(chain.from_iterable(of_group.values() for of_group in by_row), np.int32, size)
    np.add.at(counts, rows, pods)
