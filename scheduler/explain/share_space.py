"""The space for a pod or a group in its share: as it is, and as it would be."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.engine.engine import Engine
from scheduler.explain.trials import Trials
from scheduler.framework.errors import PluginError
from scheduler.framework.shares import ShareRefusal
from scheduler.groups.records import nearest
from scheduler.quota.needs import Need
from scheduler.quota.share_refs import ShareRef
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.share_usage import ShareSelector


class Running(NamedTuple):
    """A pod with a node, in the same tree of shares."""

    pod: Pod
    share: str
    amounts: Mapping[str, int]
    """In the names of the tree."""


class Space:
    """Asks whether there is space for a need in a share, and whether nodes would take the pod then."""

    def __init__(self, engine: Engine, pod: Pod, need: Need, ref: ShareRef) -> None:
        self.engine = engine
        self.pod = pod
        self.need = need
        self.ref = ref

    @property
    def is_for_group(self) -> bool:
        return self.need.pods > 1

    def tree(self, changed: Mapping[str, Share] | None = None) -> ShareTree:
        """Return a tree to change, with the present usage; `changed`: other versions of some shares."""
        return self.engine.shares.tree_with(self.ref.ledger, changed)

    def refusal(self, tree: ShareTree | None = None) -> ShareRefusal | None:
        """Say why there is no space; None if there is. `tree`: instead of the one that counts."""
        return self.engine.shares.refusal_in(tree or self.ref.ledger.tree, self.ref, self.need)

    def below(self, share: str) -> list[str]:
        """Return a share and all below it."""
        children, names = self.ref.ledger.tree.children, [share]
        for name in names:
            names.extend(children.get(name, ()))
        return names

    def running(self, pod: Pod) -> Running | None:
        """Return what a pod with a node uses in the same tree; None if that is nothing."""
        ref, ledger = self.engine.shares.ref_of(pod), self.ref.ledger
        if ref is None or ref.ledger is not ledger or ref.name not in ledger.tree.shares:
            return None
        return Running(pod, ref.name, ledger.used_by(pod, ref.said))

    def nodes(self, tree: ShareTree, without: list[Running]) -> list[str]:
        """Return the nodes that would take the pod if there was this tree, and those pods had ended."""
        framework = self.engine.frameworks[self.pod.spec.scheduler_name]
        with self.ref.ledger.what_if(tree), self._ended(without):
            try:
                return Trials(self.engine, framework).nodes_for(self.pod)
            except PluginError:
                return []

    def lacking(self) -> str:
        """Return what nodes lack for the group whatever its share; empty if they hold it, by amounts."""
        groups = self.engine.group_parts.groups
        group = groups.of(self.pod)
        pods = [each for each in groups.members(self.pod).unscheduled if not each.spec.scheduling_gates]
        if group is None or not pods:
            return ""
        framework = self.engine.frameworks[self.pod.spec.scheduler_name]
        try:
            miss = self.engine.group_parts.levels.nearest_miss(framework, group, pods)
        except PluginError:
            return ""
        return "" if miss is None else nearest(miss)

    @contextmanager
    def _ended(self, pods: list[Running]) -> Iterator[None]:
        table, by_row = self.engine.cache.table, dict[int, list[Pod]]()
        for each in pods:
            row = table.row_of(each.pod.node_name)
            if row is not None and table.has_pod(row, each.pod.uid):
                by_row.setdefault(row, []).append(each.pod)
        with ExitStack() as stack:
            for row, leaving in by_row.items():
                stack.enter_context(table.what_if(row, remove=leaving))
            yield


def space_for(engine: Engine, pod: Pod) -> Space | None:
    """Return the space for a pod, or for those that its group still needs; None if it has no share, or its
    need is not known."""
    shares = engine.shares
    if not shares.ledgers:
        return None
    groups = engine.group_parts.groups
    group = groups.of(pod)
    found: tuple[ShareSelector, Need] | None = None
    if group is not None:
        found = shares.need_of_group(group, groups.members(pod))
    selector, need = found or (shares.selector_of(pod), shares.need_of_pod(pod))
    ref = shares.ref(selector)
    return None if ref is None or need.problem else Space(engine, pod, need, ref)
