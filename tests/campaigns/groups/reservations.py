"""The rules about reservations, by the Events of groups."""

import re
from collections.abc import Collection, Iterator
from math import floor
from typing import Final

from tests.campaigns.groups.findings import Record
from tests.campaigns.groups.model import GroupState, Model, PodState
from tests.campaigns.groups.scenarios import Settings

CHOICE_SECONDS: Final = 40.0
"""A group that has waited for this long in addition is surely among those that may have a reservation."""

NODES: Final = re.compile(r"UTC \(([^)]*?)(?: and \d+ more)?\)")
"""The reserved nodes, or the first of them, in the text of an Event."""


class ReservationRules:
    def __init__(self, model: Model, record: Record, settings: Settings) -> None:
        self._model = model
        self._record = record
        self._settings = settings
        self._group = ""
        self._ended_at = -CHOICE_SECONDS

    @property
    def group(self) -> str:
        """The group that nodes may be reserved for; empty if there is none. One that is created again keeps its own."""
        is_waiting = any(not pod.place for pod in self._model.members(self._group)) if self._group else False
        return self._group if is_waiting else ""

    @property
    def priority(self) -> int:
        """That of the group; of none, less than that of any."""
        return self._model.groups[self.group].plan.priority if self.group else -1

    def missing(self) -> str:
        """The group that has surely waited for long enough, and has no reservation; empty without any."""
        if self._record.now < self._ended_at + CHOICE_SECONDS:
            return ""  # others are tried first
        waiting = (group for group in self._model.groups.values() if self._surely_waits(group))
        return next((group.plan.name for group in waiting if group.plan.priority > self.priority), "")

    def ended(self, name: str) -> None:
        """A group has its minimum, or was given up."""
        if name == self._group:
            self._group, self._ended_at = "", self._record.now

    def restarted(self) -> None:
        self._group = ""

    def began(self, name: str, text: str) -> None:
        """The Event of a reservation has come."""
        self._group = name
        group = self._model.groups[name]
        for symptom in self._faults(group):
            self._record.violated("reserved", symptom, f"nodes are reserved for {name}: {symptom}")
            return
        found = NODES.search(text)
        self._check_nodes(group, found[1].split(", ") if found else ())
        for other in self._model.groups.values():
            if other.plan.priority > self.priority and self._surely_waits(other):
                symptom = "one of higher priority waits"
                self._record.violated(
                    "reserved", symptom, f"nodes are reserved for {name}, and not for {other.plan.name}"
                )

    def _faults(self, group: GroupState) -> Iterator[str]:
        model, members = self._model, self._model.members(group.plan.name)
        waiting = [pod for pod in members if not pod.place and not pod.is_gated]
        lacks = model.minimum(group) - sum(bool(pod.place) for pod in members)
        need = max(1, lacks - model.succeeded(group, at_most=True))
        if not self._settings.reservation_seconds:
            yield "it is turned off"
        if group.plan.parts:
            yield "it is a CompositePodGroup"
        if not members or (group.plan.has_object and not group.object_exists):
            yield "the group is gone"
        elif lacks <= model.succeeded(group):
            yield "it has its minimum"
        elif len(waiting) < need:
            yield "it has too few pods"
        elif model.is_gated(group):
            yield "a pod of it is gated"
        elif group.plan.needs_license and not model.has_license:
            yield "another plugin refuses it"
        elif not self._may_fit(group, waiting, need):
            yield "it is too large"
        elif (
            # After a restart it is known to the second since when a pod waits: from its condition.
            self._record.now - floor(min(max(group.came, group.complete), *(pod.came for pod in waiting)))
            < self._settings.reservation_seconds
        ):
            yield "it is too early"

    def _may_fit(self, group: GroupState, waiting: Collection[PodState], need: int) -> bool:
        """Whether as many pods as it needs fit if all others have left: false only if it is certain."""
        smallest = min(pod.cpu for pod in waiting)
        for nodes in self._model.allowed(group.plan.name):
            if sum(self._emptied(group, name, of_daemons=False) // smallest for name in nodes) >= need:
                return True
        return False

    def _surely_waits(self, group: GroupState) -> bool:
        """Whether a group has surely waited for long enough, and fits if all others have left."""
        model, now = self._model, self._record.now
        members = model.members(group.plan.name)
        waiting = [pod for pod in members if not pod.place and not pod.is_gated]
        lacks = model.minimum(group) - sum(bool(pod.place) for pod in members)
        least, most = (lacks - model.succeeded(group, at_most=at_most) for at_most in (True, False))
        since = max((pod.came for pod in waiting), default=now)
        if (
            len(waiting) < most
            or least <= 0
            or group.plan.parts
            or len(model.said(waiting)) > 1
            or group.plan.least
            or model.is_gated(group)
        ):
            return False
        if any(pod.is_deleting and self._group_of(pod.evicted_for) == group.plan.name for pod in model.pods.values()):
            return False  # its nominations keep nodes for it
        if now - max(since, group.changed, model.nodes_came) < self._settings.reservation_seconds + CHOICE_SECONDS:
            return False
        if group.plan.needs_license or (group.plan.has_object and not group.object_exists) or group.was_given_up:
            return False
        cpus, allowed = sorted(pod.cpu for pod in waiting), list(model.allowed(group.plan.name))
        if any(model.holds(nodes, cpus[:least]) for nodes in allowed):
            return False  # it lacks no nodes, and only its backoff keeps it waiting
        return any(
            model.holds_in({name: self._emptied(group, name, of_daemons=True) for name in nodes}, cpus[-most:])
            for nodes in allowed
        )

    def _group_of(self, uid: str) -> str:
        pod = self._model.pods.get(uid)
        return "" if pod is None else pod.group

    def _emptied(self, group: GroupState, node: str, *, of_daemons: bool) -> int:
        """The cores of a node without what the group has there, and without what the pods of DaemonSets have."""
        staying = [pod for pod in self._model.pods.values() if pod.place == node and pod.phase == "Running"]
        if not of_daemons:
            staying = [pod for pod in staying if not pod.is_deleting]  # which is no member
        kept = [pod.cpu for pod in staying if pod.group == group.plan.name or (of_daemons and pod.of_daemon)]
        return self._model.nodes[node].plan.cpu - sum(kept)

    def _check_nodes(self, group: GroupState, nodes: Collection[str]) -> None:
        model, level = self._model, group.plan.required
        if bad := [name for name in nodes if not model.nodes[name].takes_pods]:
            self._record.violated("reserved", "nodes that take no pods", f"{', '.join(bad)}, for {group.plan.name}")
        if level:
            members = [pod.place for pod in model.members(group.plan.name) if pod.place]
            domains = {model.domain(name, level) for name in (*nodes, *members)}
            if len(domains) > 1 or None in domains:
                text = f"{', '.join(nodes)}, for {group.plan.name}, which requires {level}"
                self._record.violated("reserved", "nodes of several domains", text)
