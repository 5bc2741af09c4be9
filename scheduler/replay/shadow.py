"""Decides about the pods of another scheduler as soon as the watch shows that scheduler's decision, and compares.

    the watch shows a pod's node, or that it was refused
        └─► decided here, in the state just before this counts ─► verdict: metric, log, `/debug/shadow`
                 └─► the handlers apply it, as always

Nothing is bound, reserved, evicted or written. Both see nearly the same state: the other one's own bindings count there
a moment earlier, as it need not wait for the watch. After an interruption of a watch, until everything was compared
with the API server again, decisions are counted and left out: the state in which they were made is not known.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.cycle.cycle_events import PodSeen
from scheduler.cycle.evaluation import Evaluation
from scheduler.engine.engine import Engine
from scheduler.framework.status import Status
from scheduler.process.metrics import Metrics

SAME_NODE, TIE, OTHER_NODE, REFUSED, ONLY_THEY, ONLY_WE, BOTH_REFUSE, OTHER_REASON, FAULT, LEFT_OUT = (
    "same_node", "tie", "other_node", "refused", "only_they", "only_we", "both_refuse", "other_reason", "fault",
    "left_out",
)  # fmt: skip
VERDICTS: Final[Mapping[str, str]] = {
    SAME_NODE: "the same node",
    TIE: "another node with the same score",
    OTHER_NODE: "another node has a higher score here",
    REFUSED: "its node is refused here, and another one is chosen",
    ONLY_THEY: "placed there; no node is found here",
    ONLY_WE: "refused there; a node is found here",
    BOTH_REFUSE: "refused by both, for the same reasons",
    OTHER_REASON: "refused by both, for other reasons",
    FAULT: "not decided here: an error",
    LEFT_OUT: "not decided here: the watch was interrupted, and the state is not known",
}
ALIKE: Final = frozenset({SAME_NODE, TIE, BOTH_REFUSE})

MAX_KEPT: Final = 200
"""The latest differences that are kept with their details."""

MAX_TEXT: Final = 1_000
"""Characters of a message that are kept."""

LOG_SECONDS: Final = 1.0
"""Between two lines about differences; those between are counted."""

Document = dict[str, Any]

_logger = logging.getLogger(__name__)


class Shadow:
    """Compares decisions. Called on the event loop; raises nothing."""

    def __init__(
        self,
        engine: Engine,
        profile: str,
        metrics: Metrics,
        is_current: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`profile`: the other scheduler's name, and that of our profile for its pods. `now`: seconds, monotonic.

        `is_current`: whether the watches have shown all that has happened.
        """
        self._engine = engine
        self.profile = profile
        self.is_current = is_current
        self._decisions = metrics.shadow_decisions
        self._now = now
        self._began = time.time()
        self.verdicts: Counter[str] = Counter()
        self.by_plugin: Counter[tuple[str, str]] = Counter()
        """Verdict and plugin → how often it made the difference."""
        self.latest: deque[Document] = deque(maxlen=MAX_KEPT)
        self._logged_at = -LOG_SECONDS
        self._not_logged = 0

    def about(self) -> Document:
        counted = self.verdicts.total()
        alike = sum(self.verdicts[verdict] for verdict in ALIKE)
        return {
            "shadowOf": self.profile,
            "since": round(self._began),
            "isCurrent": self.is_current(),
            "decisions": counted,
            "alike": alike,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in VERDICTS if self.verdicts[verdict]},
            "plugins": [
                {"verdict": verdict, "plugin": plugin, "count": count}
                for (verdict, plugin), count in self.by_plugin.most_common()
            ],
            "latest": list(reversed(self.latest)),
        }

    def start(self) -> None:
        """Compare what happens from now on. Before the cluster was listed, what comes is no news."""
        self._engine.stream.subscribe({PodSeen: self._look})

    def _look(self, event: PodSeen) -> None:
        old, pod = event.old, event.pod
        if pod.spec.scheduler_name != self.profile or pod.is_deleting or (old is not None and old.node_name):
            return
        message = refusal_of(pod)
        is_refused = bool(message) and (old is None or message != refusal_of(old))
        if not (pod.node_name or is_refused):
            return
        if is_refused and not pod.node_name and pod.spec.scheduling_group is not None:
            return  # with its group, which is not compared as a whole
        if not self.is_current():
            self._count(LEFT_OUT)
        elif old is None:
            return  # a pod that comes with a node was not decided about: its creator did
        elif pod.node_name:
            self._record(old, lambda: self._compare_placement(old, pod.node_name))
        else:
            self._record(pod, lambda: self._compare_refusal(pod, message))

    def _count(self, verdict: str) -> None:
        self.verdicts[verdict] += 1
        self._decisions.labels(verdict).inc()

    def _record(self, pod: Pod, compare: Callable[[], Document]) -> None:
        start = self._engine.algorithm.next_start
        try:
            found = compare()
        except BaseException as error:  # noqa: BLE001  a plugin's, as nothing is awaited within: never the watch's
            found = {"verdict": FAULT, "here": _short(f"{type(error).__name__}: {error}")}
        finally:
            self._engine.algorithm.next_start = start
        verdict = found["verdict"]
        self._count(verdict)
        if verdict not in ALIKE:
            for plugin in found.pop("by", ()):
                self.by_plugin[verdict, plugin] += 1
            self._report({"at": round(time.time(), 3), "pod": str(pod), **found})

    def _evaluate(self, pod: Pod) -> Evaluation:
        """Filter and score as an attempt does; no preemption, which would begin to evict."""
        engine = self._engine
        engine.cache.mend()
        return Evaluation(engine.algorithm, engine.frameworks[self.profile], pod, attempt=1)

    def _compare_placement(self, pod: Pod, theirs: str) -> Document:
        found = self._evaluate(pod)
        ours = found.selected
        if ours == theirs:
            return {"verdict": SAME_NODE}
        refusal = found.node_to_status.get(theirs)
        if not ours:
            message = _short(found.search.diagnosis.message)
            return {"verdict": ONLY_THEY, "there": theirs, "here": message, **_refused(refusal)}
        if refusal is not None or self._engine.cache.table.row_of(theirs) is None:
            return {"verdict": REFUSED, "there": theirs, "here": ours, **_refused(refusal)}
        difference = {"verdict": OTHER_NODE, "there": theirs, "here": ours}
        if theirs not in found.feasible_names:  # a nominated node has ended the search
            return {**difference, "by": ["nomination"]}
        there, here = found.scores_of(theirs), found.scores_of(ours)
        totals = [sum(there.values()), sum(here.values())]
        if totals[0] == totals[1]:
            return {"verdict": TIE}
        scores = {plugin: [there[plugin], here[plugin]] for plugin in there if there[plugin] != here[plugin]}
        better = [plugin for plugin in scores if here[plugin] > there[plugin]]
        return {**difference, "totals": totals, "scores": scores, "by": better}

    def _compare_refusal(self, pod: Pod, message: str) -> Document:
        found = self._evaluate(pod)
        if found.selected:
            return {"verdict": ONLY_WE, "there": _short(message), "here": found.selected}
        diagnosis = found.search.diagnosis
        # The other scheduler appends what preemption found; the shadow does not run preemption.
        if message.startswith(diagnosis.message.rstrip(".")):
            return {"verdict": BOTH_REFUSE}
        plugins = sorted(diagnosis.unschedulable_plugins)
        return {"verdict": OTHER_REASON, "there": _short(message), "here": _short(diagnosis.message), "by": plugins}

    def _report(self, difference: Document) -> None:
        self.latest.append(difference)
        now = self._now()
        if now - self._logged_at < LOG_SECONDS:
            self._not_logged += 1
            return
        fields: Document = {key: difference[key] for key in ("pod", "there", "here", "plugin") if key in difference}
        if "message" in difference:
            fields["reason"] = difference["message"]  # a record of `logging` has a message of its own
        if self._not_logged:
            fields["notLogged"] = self._not_logged
        self._logged_at, self._not_logged = now, 0
        _logger.info("Shadow: %s", VERDICTS[difference["verdict"]], extra=fields)


def refusal_of(pod: Pod) -> str:
    """Return why the other scheduler found no node for a pod; empty if it has not said so."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            return condition.message
    return ""


def _refused(refusal: Status | None) -> Document:
    if refusal is None:
        return {"message": "the node is not known here"}
    plugin = refusal.plugin
    return {"plugin": plugin, "message": _short(refusal.message), "by": [plugin] if plugin else []}


def _short(text: str) -> str:
    return shortened(text, MAX_TEXT)
