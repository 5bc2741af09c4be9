"""The rules of the campaign, each with the sentence of docs/groups.md that it comes from, and what violates them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

RULES: Final = {
    "all or nothing": "All or nothing. No pod holds anything while its group waits.",
    "tree": "The whole tree is tried at once …; minGroupCount of them have to fit …; a topology …",
    "no object": "waiting for the PodGroup … of the pod to appear",
    "disagree": "Pods without a node must have the same … priority and loadmaster.dev annotations; otherwise none …",
    "gated": "A pod with scheduling gates keeps its whole group waiting",
    "least": "minResources must be free in the cluster, together with what the group has, before any pod is tried",
    "holds": "No pod holds anything while its group waits.",
    "silent": "autoscalers.md: a member of a group that lacks nodes: PodScheduled=False, Unschedulable, all members",
    "higher": "of a higher priority than the group; of a DaemonSet: as always",
    "required": "all pods go to one rack, or none is placed",
    "late member": "Later pods and replacements go where the others run: always, if the level is required.",
    "preferred": "all pods go to one rack; if none holds them, to one block",
    "group fits": "… and is tried again if enough is free for as many pods as it needs.",
    "elastic": "Pods beyond the minimum are placed at once where they fit",
    "lone fits": "A reservation refuses pods; nothing else about groups keeps a pod from what is free.",
    "fresh": "A fresh engine on the same state places nothing that was left (issue 32)",
    "restless": "… after 5 minutes in any case: whom it may evict for, it has evicted for by then.",
    "starved": "… for ten minutes no further pod of it would fit and no announced end is ahead. Pods that were "
    "refused are tried then, before another group gets nodes.",
    "held": "How it ends. The group is placed, deleted, changed, short of quota, or loses pods that it needs; …",
    "nominated": "Nothing is nominated for what is gone.",
    "reserved": "A group … that another plugin refuses, or that would not fit on empty nodes gets none.",
    "in vain": "Evictions happen only if the whole group fits then … What they free is kept for the group.",
    "loop": "While the victims end, … the group evicts no others.",
    "unneeded": "… puts these back one by one, first … the most important ones, and evicts only the rest.",
    "damaged": "… what is left of the less important one is evicted …: as a whole, and only if the other …",
    "victim": "Evictions … by the priority of its pods",
    "node": "A binding goes to a node that is there, takes pods, and has enough.",
    "broken": "The scheduler goes on, and its tables agree.",
}


@dataclass(frozen=True)
class Finding:
    """A rule that was violated."""

    rule: str
    symptom: str
    """Without names and times: findings of one symptom are likely to have one cause."""
    text: str
    at: float

    @property
    def kind(self) -> str:
        return f"{self.rule}: {self.symptom}"


@dataclass
class Record:
    """All that happened in a scenario."""

    history: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """How often each kind of event happened."""
    now: float = 0.0

    def note(self, kind: str, text: str) -> None:
        """Something happened."""
        self.seen[kind] += 1
        self.history.append(f"{self.now:8.1f} s  {text}")

    def total(self, kind: str) -> int:
        """How often something has happened."""
        return self.seen[kind]

    def violated(self, rule: str, symptom: str, text: str) -> None:
        """Note a violation, once for each kind."""
        finding = Finding(rule, symptom, text, self.now)
        if all(each.kind != finding.kind for each in self.findings):
            self.findings.append(finding)
            self.history.append(f"{self.now:8.1f} s  ! {finding.kind}: {text}")
