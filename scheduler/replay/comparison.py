"""The decisions of a replay that differ from those recorded, and the reasons.

With the recorded configuration, decisions must be equal in all that a trace has of them. Another configuration decides
each pod in the state in which it was decided then; the recorded decision counts for the next one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.evaluation import Evaluation
from scheduler.framework.errors import SchedulerError
from scheduler.process.progress import SILENT, Progress
from scheduler.replay.player import Attempt, Player
from scheduler.replay.replayed_calls import TRYING
from scheduler.replay.trace.lines import Decision
from scheduler.runtime.framework import Framework

MAX_DIFFERENCES: Final = 1_000
"""Differences that are reported in detail."""

SAME, OTHER_NODE, ONLY_NOW, ONLY_THEN, OTHER_REASON, OTHER_SCORES = (
    "same", "other node", "placed only now", "placed only then", "other reason", "other scores",
)  # fmt: skip

MAX_TEXT: Final = 10_000
"""Characters of a message that are reported."""

Document = dict[str, Any]


def kind_of(recorded: Decision, now: Decision) -> str:
    """Return how two decisions differ, in a few words."""
    if recorded.node != now.node:
        return OTHER_NODE if recorded.node and now.node else ONLY_NOW if now.node else ONLY_THEN
    if not now.node:
        then = (recorded.message, recorded.error, recorded.plugins, recorded.pending, recorded.nominated)
        return SAME if then == (now.message, now.error, now.plugins, now.pending, now.nominated) else OTHER_REASON
    return SAME if recorded == now else OTHER_SCORES


class Comparison:
    """Compares recorded decisions with those made now, attempt by attempt."""

    def __init__(
        self,
        player: Player,
        other: Mapping[str, Framework] | None = None,
        keep: Callable[[bytes], object] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        """`other`: profiles of another configuration, by the names of those recorded. `keep` gets each decision."""
        self._player = player
        self._other = other
        self._keep = keep
        self._progress = progress
        self.kinds: Counter[str] = Counter()
        self.not_compared = 0
        """Attempts with extenders that another configuration cannot decide: their answers to it are not known."""
        self.unfaithful = 0
        """Attempts that the recorded configuration itself decides differently now, while another one is compared."""
        self.differences: list[Document] = []

    def add(self, attempt: Attempt, replayed: Decision) -> None:
        """Compare an attempt; `replayed`: what the recorded configuration decides now."""
        self._progress.done += 1
        token = TRYING.set(True)
        try:
            self._compare(attempt, replayed)
        finally:
            TRYING.reset(token)

    def _compare(self, attempt: Attempt, replayed: Decision) -> None:
        framework, now = attempt.framework, replayed
        if self._other is not None:
            self.unfaithful += replayed != attempt.recorded
            if attempt.has_extenders:
                self.not_compared += 1
                return
            framework = self._other[framework.name]
            now = self._player.decide(framework, attempt)[1]
        if self._keep is not None:
            self._keep(msgspec.json.encode(now))
        kind = kind_of(attempt.recorded, now)
        if self._other is not None and kind == OTHER_SCORES:
            kind = SAME  # scores differ on purpose
        self.kinds[kind] += 1
        if kind != SAME and len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(self._difference(kind, attempt, framework, now))

    def _difference(self, kind: str, attempt: Attempt, framework: Framework, now: Decision) -> Document:
        return {
            "pod": str(attempt.pod),
            "attempt": attempt.number,
            "profile": attempt.framework.name,
            "seconds": round(self._player.clock.now(), 3),
            "kind": kind,
            "then": as_document(attempt.recorded),
            "now": as_document(now),
            # A member saw those before it on their nodes, where they are no more.
            "why": {} if attempt.group else _why(self._player.engine.algorithm, framework, attempt, now),
        }


def _why(algorithm: Algorithm, framework: Framework, attempt: Attempt, now: Decision) -> Document:
    """Return {"refused"?: {node: {"plugin", "message"}}, "scores"?: {node: {plugin: score}}, "tie"?, "error"?}.

    Scores are weighted. `tie`: both nodes are the best, and the choice among these is another one.
    """
    nodes = [name for name in dict.fromkeys((attempt.recorded.node, now.node)) if name]
    if not nodes:
        return {}
    algorithm.next_start = attempt.start
    found: Document = {}
    try:
        evaluation = Evaluation(algorithm, framework, attempt.pod, attempt.number)
        refused = {name: status for name in nodes if (status := evaluation.node_to_status.get(name)) is not None}
        feasible = [name for name in nodes if name in evaluation.feasible_names]
        scores = {name: evaluation.scores_of(name) for name in feasible} if len(feasible) > 1 else {}
    except SchedulerError as error:
        return {"error": str(error)}
    if refused:
        found["refused"] = {
            name: {"plugin": status.plugin, "message": status.message} for name, status in refused.items()
        }
    if scores:
        found["scores"] = scores
        if len({sum(of.values()) for of in scores.values()}) == 1:
            found["tie"] = True
    return found


def as_document(decision: Decision) -> Document:
    """Return {"node"} or {"message", "nominated"?} or {"error"}."""
    if decision.node:
        return {"node": decision.node}
    if decision.error:
        return {"error": decision.error[:MAX_TEXT]}
    document: Document = {"message": decision.message[:MAX_TEXT]}
    return document | ({"nominated": decision.nominated} if decision.nominated else {})
