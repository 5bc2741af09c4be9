"""The candidates of a preemption that the extenders agree to.

While they answer, pods come and go: a node is no longer a candidate if its pods differ from those that they were shown.

Rule: callExtenders in framework/preemption/preemption.go and ProcessPreemption in extender.go, at v1.36.3.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.extenders import wire
from scheduler.extenders.chain import Question
from scheduler.extenders.extender import Extender
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.framework.extenders import ExtenderError, Overtaken
from scheduler.framework.preemption.dry_run import Victims
from scheduler.state.nodes.node_table import NodeTable

MAX_BYTES: Final = 64 << 20
"""Of whole victims in one question; candidates beyond are left out, the last first."""

AT_ONCE: Final = 50
"""Victims that are read together."""


class PreemptionQuestion:
    """Implements framework.extenders.PreemptionExtenders for one attempt."""

    def __init__(self, question: Question, nodes: NodeTable) -> None:
        self._question = question
        self._nodes = nodes

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """See PreemptionExtenders. Raises ExtenderError, Overtaken."""
        shown = {name: self._uids(name) for name in victims}
        left = dict(victims)
        was_overtaken = False
        for extender in self._question.extenders:
            if not extender.preempts:
                continue
            try:
                answer = await extender.preempt(await self._arguments(extender, left))
                found = {name: self._pods_of(extender, name, meta, shown) for name, meta in answer.items()}
                self._check(extender, found, answer)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                self._question.skip(extender, error)
                continue
            left = {name: each for name, each in found.items() if each is not None and each.pods}
            was_overtaken |= any(each is None for each in found.values())
            if not left:
                break
        unchanged = {name: each for name, each in left.items() if self._is_as(name, shown)}
        if not unchanged and (left or was_overtaken):
            raise Overtaken("the pods on the nodes changed while the extenders were asked about victims")
        return unchanged

    def _is_as(self, name: str, shown: Mapping[str, frozenset[str] | None]) -> bool:
        """Return whether a node has the pods that it had; one that was not asked about counts as it is."""
        return name not in shown or shown[name] == self._uids(name)

    def _uids(self, name: str) -> frozenset[str] | None:
        """The pods on a node; None if there is no such node."""
        if self._nodes.row_of(name) is None:
            return None
        return frozenset(pod.uid for pod in self._nodes.pods_on(name))

    async def _arguments(self, extender: Extender, victims: Mapping[str, Victims]) -> wire.Body:
        pod = await self._question.json()
        if extender.knows_nodes:
            meta = {
                name: wire.MetaVictims([each.uid for each in pods], violations)
                for name, (pods, violations) in victims.items()
            }
            return wire.meta_preemption_arguments(pod, meta)
        whole: dict[str, tuple[list[bytes], int]] = {}
        size = 0
        for name, (pods, violations) in victims.items():
            read = await self._read(pods)
            size += sum(map(len, read))
            if whole and size > MAX_BYTES:
                break
            whole[name] = read, violations
        return wire.preemption_arguments(pod, whole)

    async def _read(self, pods: Sequence[Pod]) -> list[bytes]:
        """Whole pods as JSON; those that are gone by now are left out."""
        found = []
        for start in range(0, len(pods), AT_ONCE):
            part = pods[start : start + AT_ONCE]
            try:
                read = await together(*map(self._question.pods.read, part))
            except ClusterError as error:
                raise ExtenderError(f"reading victims for extenders: {error}") from error
            found += [each.json for each in read if each is not None]
        return found

    def _pods_of(
        self, extender: Extender, name: str, meta: wire.MetaVictims, shown: Mapping[str, frozenset[str] | None]
    ) -> Victims | None:
        """Find the victims that an extender names; None if node or victims are gone since it was asked.

        Raises ExtenderError for what never was there.
        """
        if self._nodes.row_of(name) is None:
            if name in shown:
                return None
            raise ExtenderError(f"nodeinfo not found for node name {json.dumps(name)}")
        there = {pod.uid: pod for pod in self._nodes.pods_on(name)}
        known = shown.get(name) or ()
        for uid in meta.uids:
            if uid not in there and uid not in known:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        pods = [there[uid] for uid in meta.uids if uid in there]
        return Victims(pods, meta.violations) if pods or not meta.uids else None

    def _check(
        self, extender: Extender, found: Mapping[str, Victims | None], answer: Mapping[str, wire.MetaVictims]
    ) -> None:
        """Raise ExtenderError for a node without victims; for an ignorable extender such a node is just left out."""
        for name, victims in found.items():
            if victims is not None and not answer[name].uids and not extender.is_ignorable:
                raise ExtenderError(f"expected at least one victim pod on node {json.dumps(name)}")
