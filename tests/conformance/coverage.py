"""Count what was judged, so that a run without differences also says how much it saw."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Coverage:
    """Verdicts by plugin, over any number of cases."""

    cases: int = 0
    pods: Counter[str] = field(default_factory=Counter)
    """By outcome: placed, rejected, gated, nominated, error."""

    verdicts: int = 0
    """Pairs of a pod and a node."""

    rejected: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, set[str]] = field(default_factory=dict)
    scored: Counter[str] = field(default_factory=Counter)
    scores: dict[str, set[int]] = field(default_factory=dict)

    def add(self, verdict: Json) -> None:
        """Count one case."""
        self.cases += 1
        for pod in verdict["pods"]:
            self.pods[outcome(pod)] += 1
            for node in pod["nodes"].values():
                self._add_node(node)

    def _add_node(self, node: Json) -> None:
        self.verdicts += 1
        if node["code"] != "Success":
            plugin = node.get("plugin", "none")
            self.rejected[plugin] += 1
            self.reasons.setdefault(plugin, set()).update(node.get("reasons") or ())
        for plugin, score in (node.get("scores") or {}).items():
            self.scored[plugin] += 1
            self.scores.setdefault(plugin, set()).add(score)

    def table(self) -> str:
        """The counts as text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.pods.items()))
        yield f"{self.cases} cases, {self.pods.total()} pods ({outcomes}), {self.verdicts} verdicts on a pod and a node"
        yield f"{'plugin':<34}{'rejected':>10}{'reasons':>9}{'scored':>10}{'scores':>8}"
        for plugin in sorted(self.rejected.keys() | self.scored.keys()):
            reasons, scores = self.reasons.get(plugin, ()), self.scores.get(plugin, ())
            yield (f"{plugin:<34}{self.rejected[plugin]:>10}{len(reasons):>9}{self.scored[plugin]:>10}{len(scores):>8}")


def outcome(pod: Json) -> str:
    """What became of a pod, in a word."""
    if pod.get("gated"):
        return "gated"
    if pod["node"]:
        return "placed"
    if pod["nominatedNode"]:
        return "nominated"
    return "rejected" if "nodes are available" in pod["message"] or not pod["nodes"] else "error"
