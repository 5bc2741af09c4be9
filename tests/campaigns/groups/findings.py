"""The rules of the campaign, each with the sentence of docs/groups.md that it comes from, and what violates them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

RULES: Final = {
    "all or nothing": "All or nothing, in one step. No pod holds anything while its group waits.",
    "no object": "waiting for the PodGroup … of the pod to appear",
    "disagree": "The pods of a group agree: the same schedulerName, priority and annotations. If not, none is tried.",
    "least": "minResources: what must be free in the cluster, together with what the group has, before …",
    "holds": "No pod holds anything while its group waits.",
    "higher": "of a higher priority than the group; of a DaemonSet: as always",
    "required": "all pods go to one rack, or none is placed",
    "late member": "Later pods, and those that replace others, go where the others run: always, if … required.",
    "preferred": "all pods go to one rack; if none holds them, to one block",
    "group fits": "… and is tried again if, by what is free, as many pods as it needs may fit.",
    "elastic": "Pods beyond the minimum are placed at once where they fit",
    "lone fits": "A reservation refuses pods; nothing else about groups keeps a pod from what is free.",
    "fresh": "A fresh engine on the same state places nothing that was left (issue 32)",
    "starved": "given up, if for ten minutes no further pod of the group would fit … The pods that the reservation has "
    "refused are tried again at once.",
    "held": "How it ends. The group is placed; it is deleted, changed or loses pods that it needs; …",
    "nominated": "Nothing is nominated for what is gone.",
    "reserved": "A group that would not fit if all others had left gets no reservation.",
    "in vain": "Evictions for a group happen only if all of it fits then, by the priority of its pods.",
    "loop": "Evictions for a group happen only if all of it fits then: so it does not evict again and again.",
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

    def violated(self, rule: str, symptom: str, text: str) -> None:
        """Note a violation, once for each kind."""
        finding = Finding(rule, symptom, text, self.now)
        if all(each.kind != finding.kind for each in self.findings):
            self.findings.append(finding)
            self.history.append(f"{self.now:8.1f} s  ! {finding.kind}: {text}")
