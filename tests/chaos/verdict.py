"""What must hold of the API server's objects after a round. Pure: objects and the record in, violations out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Final

from tests.chaos.judge import RESOURCES, Judge, allocatable_of, is_gated, is_going, node_of, total
from tests.chaos.load import SCHEDULERS
from tests.chaos.record import Post, Record
from tests.controlplane import condition
from tests.controlplane.client import Object

KNOWN_SECONDS: Final = 1.0
"""What an incarnation was told this long before it sent a binding, it must have counted."""


def is_ours(pod: Object) -> bool:
    return pod["spec"]["schedulerName"] in SCHEDULERS


def name_of(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']} ({pod['metadata']['uid']})"


def bound_once(record: Record, pods: Iterable[Object], seen: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """No pod was bound twice or moved, and each is where our binding put it. `seen`: UID → nodes that were observed."""
    successes = record.successes()
    for posts in successes.values():
        if len(posts) > 1:
            yield f"{posts[0].pod} ({posts[0].uid}) was bound {len(posts)} times: {[post.node for post in posts]}"
    for uid, nodes in seen.items():
        if len(set(nodes)) > 1:
            yield f"the pod with UID {uid} moved: {sorted(set(nodes))}"
    for pod in pods:
        nodes = [post.node for post in successes.get(pod["metadata"]["uid"], ())]
        if nodes and node_of(pod) not in nodes:
            yield f"{name_of(pod)} was bound to {nodes} and is on {node_of(pod) or 'no node'}"


def repeated_blindly(record: Record) -> Iterator[str]:
    """Who has bound a pod, and does not know it as the answer was lost, reads the pod before it tries again."""
    done: dict[tuple[str, str], float] = {}
    for post in sorted(record.posts, key=lambda post: post.received):
        before = done.get((post.uid, post.incarnation))
        if before is not None and not any(
            (read.pod, read.incarnation) == (post.pod, post.incarnation) and before < read.answered < post.received
            for read in record.reads
        ):
            late = post.received - before
            yield (
                f"{post.pod} ({post.uid}) was bound by {post.incarnation}, "
                f"which did not look and tried again {late:.2f} s later"
            )
        if 200 <= post.status < 300:
            done.setdefault((post.uid, post.incarnation), post.received)


def disputes(record: Record) -> Iterator[str]:
    """Who has lost the Lease never sends a binding after another has: of incarnations one works after the other."""
    last: dict[str, Post] = {}
    began: dict[str, Post] = {}
    for post in sorted(record.posts, key=lambda post: post.received):
        began.setdefault(post.incarnation, post)
        last[post.incarnation] = post
    for one, other in permutations(began, 2):
        if began[one].received < began[other].received < last[one].received:
            late = last[one].received - began[other].received
            yield f"{one} sent a binding {late:.2f} s after the first of {other}"


def known_overcommits(record: Record, nodes: Sequence[Object], pods: Sequence[Object]) -> Iterator[str]:
    """No binding of ours put more on a node than it has, as far as its sender knew.

    An incarnation knows what it has bound itself, and what it was told `KNOWN_SECONDS` before. Of another's binding
    that it has not been told of, no scheduler can know.
    """
    successes = record.successes()
    on: dict[str, list[Object]] = {}
    for pod in pods:
        on.setdefault(node_of(pod), []).append(pod)
    for node in nodes:
        name, allocatable = node["metadata"]["name"], allocatable_of(node)
        if all(total(on.get(name, ()))[resource] <= allocatable[resource] for resource in RESOURCES):
            continue
        for pod in on.get(name, ()):
            for post in successes.get(pod["metadata"]["uid"], ()):
                counted = [pod, *(other for other in on[name] if other is not pod and knew(record, post, other))]
                needed = total(counted)
                if knew_node(record, post, node) and any(needed[each] > allocatable[each] for each in RESOURCES):
                    others = ", ".join(other["metadata"]["name"] for other in counted[1:])
                    yield f"{name_of(pod)} was bound to {name} by {post.incarnation}, which knew of {others} there"


def knew(record: Record, post: Post, other: Object) -> bool:
    """Whether the sender of a binding knew of another pod on the node."""
    uid = other["metadata"]["uid"]
    told = record.told[post.incarnation].bound.get(uid)
    if told is not None and told <= post.received - KNOWN_SECONDS:
        return True
    own = [each for each in record.posts if each.uid == uid and each.incarnation == post.incarnation]
    return any(200 <= each.status < 300 and each.received < post.received for each in own)


def knew_node(record: Record, post: Post, node: Object) -> bool:
    told = record.told[post.incarnation].nodes.get(node["metadata"]["uid"])
    return told is not None and told <= post.received - KNOWN_SECONDS


def untrue_waits(judge: Judge, pods: Iterable[Object]) -> Iterator[str]:
    """Who waits is gated or fits nowhere, and was told so."""
    for pod in pods:
        if node_of(pod) or is_going(pod) or not is_ours(pod):
            continue
        told = condition(pod, "PodScheduled")
        if is_gated(pod):
            if told is None or told["reason"] != "SchedulingGated":
                yield f"{name_of(pod)} is gated, and its condition is {told}"
        elif (node := next(judge.feasible(pod), None)) is not None:
            yield f"{name_of(pod)} waits, though it could be on {node}; its condition is {told}"
        elif told is None or (told["status"], told["reason"]) != ("False", "Unschedulable"):
            yield f"{name_of(pod)} fits nowhere, and its condition is {told}"


def untrue_conditions(pods: Iterable[Object]) -> Iterator[str]:
    """Who is bound is told so, and nothing else."""
    for pod in pods:
        if not node_of(pod) or not is_ours(pod):
            continue
        told = condition(pod, "PodScheduled")
        if told is None or told["status"] != "True":
            yield f"{name_of(pod)} is bound to {node_of(pod)}, and its condition is {told}"
