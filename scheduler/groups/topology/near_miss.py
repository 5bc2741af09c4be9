"""The domain that comes nearest to holding a group, and its shortage: for the text about a pending group."""

from dataclasses import dataclass

import numpy as np

from scheduler.framework.nodes.columns import BoolColumn
from scheduler.framework.nodes.nodes import NodeColumns
from scheduler.groups.amounts import total_of
from scheduler.groups.topology.capacity import MANY, Capacity, Shape
from scheduler.groups.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A domain that does not hold a group: "rack r7 lacks 2 nodes with 8 gpus"."""

    label: str
    """The label of its level, `example.com/rack`; empty for all nodes."""

    domain: str
    """Its name, `r7`; empty for all nodes."""

    fits: int
    """How many of the members without a node it holds, at most."""

    needed: int
    """How many of them need one before any is bound."""

    node_count: int
    """How many nodes it has."""

    refusing_count: int
    """How many of them refuse the members for what they are, by labels or taints, whatever is free on them."""

    resource: str = ""
    """The resource that it has least of, `nvidia.com/gpu`; empty if every node of it refuses the members."""

    lacking_nodes: int = 0
    """How many nodes more would do, with `amount_each` of the resource free on each. About: the largest counts."""

    amount_each: int = 0
    """In the resource's own unit: thousandths of a core, bytes, or pieces."""

    is_fixed: bool = False
    """Whether other pods of the group run there, so that it cannot go elsewhere."""


def nearest_miss(nodes: NodeColumns, domains: Domains, capacity: Capacity, needed: int) -> NearMiss | None:
    """Return the domain that comes nearest to holding the `needed` members, of those that do not, and what it lacks.

    Found by columns alone: what else refuses pods is not seen.
    """
    all_fits, spare = capacity.fits(domains), capacity.in_domains(domains)
    missing = (domains.count(np.flatnonzero(capacity.within)) > 0) & (all_fits < needed)
    number = min(
        np.flatnonzero(missing).tolist(),
        key=lambda each: (-all_fits[each], -spare[each], domains.names[each]),
        default=None,
    )
    if number is None:
        return None
    rows, fits = domains.rows(number) & capacity.within, int(all_fits[number])
    short = [
        shape.count - min(int(by_row[rows].sum()), shape.count)
        for shape, by_row in zip(capacity.shapes, capacity.by_shape, strict=True)
    ]
    shape = capacity.shapes[int(np.argmax(short))]
    # Each shape may fit by itself, but not all of them.
    lacking = min(max(short) or needed, needed - fits)
    resource = capacity.tightest(shape, rows)
    on_one = _on_one_node(nodes, shape, rows if (rows & shape.possible).any() else capacity.within)
    return NearMiss(
        label=domains.label,
        domain=domains.names[number],
        fits=fits,
        needed=needed,
        node_count=int(np.count_nonzero(rows)),
        refusing_count=int(np.count_nonzero(rows & ~shape.possible)),
        resource=resource,
        lacking_nodes=-(-lacking // on_one),
        amount_each=shape.demand[resource] * min(lacking, on_one) if resource else 0,
    )


def _on_one_node(nodes: NodeColumns, shape: Shape, rows: BoolColumn) -> int:
    """Return how many pods of a shape the largest of these nodes takes while it is empty; 1 at least."""
    most = np.full(nodes.size, MANY, np.int64)
    for resource, amount in shape.demand.items():
        np.minimum(most, total_of(nodes, resource) // amount, out=most)
    return max(int(most[rows & shape.possible].max(initial=0)), 1)
