"""Changes that would give a pod or a group space in its share. Each was tried out.

Candidates: a higher maximum or minimum of the share, or of the ancestor that lacks something; and ending borrowers'
pods, the least important first. Lower requests are suggested by the plugin.
"""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Final

import msgspec

from scheduler.api.pods.importance import importance
from scheduler.api.wording.spelling import quantity, spelled_for
from scheduler.api.wording.text import counted, shortened
from scheduler.explain.documents import Suggestion
from scheduler.explain.groups import MAX_NAMES
from scheduler.explain.share_space import Running, Space
from scheduler.explain.suggestions import deletion_of, names_of_pods
from scheduler.framework.events import CLUSTER_QUEUE, ELASTIC_QUOTA, ELASTIC_QUOTA_SIGS
from scheduler.framework.nodes.resources import parse_resource
from scheduler.framework.shares import ShareLack, ShareRefusal
from scheduler.quota.apis.elastic_quotas import ALL
from scheduler.quota.tree import Share, ShareTree

MAX_ROUNDS: Final = 4
"""With each, the next thing that is lacking is found: an elastic quota's maximum, then the sum of all minima."""

MAX_LEAVING: Final = 20
"""Pods that are suggested to be deleted."""

NO_NODE: Final = "no node takes it then, as they are"
OF_GROUP: Final = "the group has space in its share, and whether nodes hold it was not tried"

_KINDS: Final = ("minimum", "maximum", "borrowing_limit")
_DECLARED: Final = {"minimum": "minimum", "maximum": "maximum", "borrowing_limit": "borrowingLimit"}
_WORDS: Final = {
    ELASTIC_QUOTA: {"minimum": "min", "maximum": "max"},
    CLUSTER_QUEUE: {"minimum": "nominalQuota", "borrowing_limit": "borrowingLimit"},
}
"""Source → the names of the fields there."""


def remedies(space: Space, refusal: ShareRefusal, running: Sequence[Running]) -> Iterator[Suggestion | None]:
    """Yield suggestions; None is a step without result."""
    seen: list[Mapping[str, Share]] = []
    for at_ancestor in (False, True):
        changed = _raised(space, at_ancestor)
        if changed and changed not in seen:
            seen.append(changed)
            yield _suggestion(space, _text_of(space, changed), space.tree(changed), [], _command_for(space, changed))
        yield None
    leaving = _leaving(space, refusal, running)
    if leaving:
        pods, shares = [each.pod for each in leaving], sorted({each.share for each in leaving})[:3]
        text = f"delete {counted(len(pods), 'pod')} of {' and '.join(shares)} ({names_of_pods(pods)})"
        yield _suggestion(space, text, _without(space, leaving), leaving, deletion_of(pods))


def _suggestion(space: Space, text: str, tree: ShareTree, leaving: list[Running], command: str) -> Suggestion:
    if space.is_for_group:
        lacking = OF_GROUP if leaving else space.lacking()
        return Suggestion(text, 0, (), command=command, obstacle=f"then {lacking}" if lacking else "")
    nodes = space.nodes(tree, leaving)
    return Suggestion(text, len(nodes), nodes[:MAX_NAMES], command=command, obstacle="" if nodes else NO_NODE)


def _raised(space: Space, at_ancestor: bool) -> Mapping[str, Share] | None:
    """Return versions of shares with which there is space; None if that cannot be had.

    Where others do not leave enough, more is guaranteed to the share itself; `at_ancestor`: to the ancestor that
    has too little.
    """
    changed: dict[str, Share] = {}
    for _ in range(MAX_ROUNDS):
        tree = space.tree(changed)
        refusal = space.refusal(tree)
        if refusal is None:
            return changed
        for lack in refusal.lacks:
            name = lack.share if lack.is_limit or at_ancestor else space.ref.name
            share = changed.get(name) or tree.shares.get(name)
            if share is None or name == ALL:
                return None
            changed[name] = _with_more(share, lack)
    return None


def _with_more(share: Share, lack: ShareLack) -> Share:
    """Return a share that may use more, or that is guaranteed more."""
    limits = {kind: getattr(share, kind) for kind in _KINDS}
    resource, missing = lack.resource, lack.missing
    if lack.is_limit:
        for kind in ("maximum", "borrowing_limit"):
            if resource in limits[kind]:
                limits[kind] = {**limits[kind], resource: limits[kind][resource] + missing}
    else:
        minimum = limits["minimum"].get(resource, 0) + missing
        limits["minimum"] = {**limits["minimum"], resource: minimum}
        if limits["maximum"].get(resource, minimum) < minimum:
            limits["maximum"] = {**limits["maximum"], resource: minimum}
    return msgspec.structs.replace(share, **limits)


def _changes(space: Space, changed: Mapping[str, Share]) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield share, what of it is raised, and to which amounts."""
    before = space.ref.ledger.tree.shares
    for name, share in changed.items():
        for kind in _KINDS:
            old = getattr(before[name], kind)
            new = {each: amount for each, amount in getattr(share, kind).items() if old.get(each) != amount}
            if new:
                yield name, kind, new


def _text_of(space: Space, changed: Mapping[str, Share]) -> str:
    clauses, source = [], space.ref.ledger.source
    words = _WORDS.get(source, _DECLARED)
    for name, kind, amounts in _changes(space, changed):
        said = [f"{spelled_for(source, each, amount)} {shortened(each, 253)}" for each, amount in amounts.items()]
        to = " and ".join(said)
        clauses.append(f"the {words[kind]} of {name} to {to}")
    return f"raise {', and '.join(clauses)}"


def _command_for(space: Space, changed: Mapping[str, Share]) -> str:
    """Return the command that changes the elastic quotas; empty for shares that are no such objects."""
    commands = []
    for name in changed:
        found = space.ref.ledger.adapter.object_of(name)
        if found is None or found[0] not in (ELASTIC_QUOTA, ELASTIC_QUOTA_SIGS):
            return ""
        source, metadata = found
        resource = parse_resource(source)
        spec: dict[str, dict[str, str]] = {}
        for of, kind, amounts in _changes(space, changed):
            if of == name:
                spec[_WORDS[ELASTIC_QUOTA][kind]] = {each: quantity(each, amount) for each, amount in amounts.items()}
        patch = quote(msgspec.json.encode({"spec": spec}).decode())
        commands.append(
            f"kubectl patch {resource.plural}.{resource.group} --namespace {quote(metadata.namespace)} "
            f"{quote(metadata.name)} --type=merge --patch={patch}"
        )
    return " && ".join(commands)


def _leaving(space: Space, refusal: ShareRefusal, running: Sequence[Running]) -> list[Running]:
    """Return pods without which there is space, each of them needed; empty if that cannot be had."""
    shares: set[str] = set()
    for lack in refusal.lacks:
        shares.update(space.below(lack.share) if lack.is_limit else lack.borrowers)
    candidates = [each for each in running if each.share in shares]
    candidates.sort(key=lambda each: importance(each.pod), reverse=True)
    found: list[Running] = []
    tree = space.tree()
    for each in candidates[:MAX_LEAVING]:
        tree.remove(each.share, each.amounts)
        found.append(each)
        if space.refusal(tree) is None:
            break
    else:
        return []
    for each in tuple(found):
        rest = [other for other in found if other is not each]
        if space.refusal(_without(space, rest)) is None:
            found = rest
    return found


def _without(space: Space, leaving: Sequence[Running]) -> ShareTree:
    tree = space.tree()
    for each in leaving:
        tree.remove(each.share, each.amounts)
    return tree
