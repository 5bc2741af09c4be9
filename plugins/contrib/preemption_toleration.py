"""Evict as DefaultPreemption does, but no pods whose PriorityClass says, by its annotations, that they tolerate it.

Rule: pkg/preemptiontoleration of scheduler-plugins (preemption_toleration_policy.go, ExemptedFromPreemption).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from plugins.default_preemption.plugin import DefaultPreemption
from plugins.shared.eviction.budgets import POD_DISRUPTION_BUDGET
from plugins.shared.eviction.candidates import Exempt
from scheduler import framework as fw
from scheduler.api.selectors import parse_int64

PRIORITY_CLASS: Final = "priorityclasses.v1.scheduling.k8s.io"
PREFIX: Final = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM_PREEMPTABLE_PRIORITY: Final = f"{PREFIX}minimum-preemptable-priority"
TOLERATION_SECONDS: Final = f"{PREFIX}toleration-seconds"


class Policy(NamedTuple):
    """The preemptions that the pods of a class tolerate: more important pods that cannot evict them."""

    minimum_preemptable_priority: int
    """Preemptors of this priority or a higher one can."""

    toleration_seconds: int
    """For so long after they were placed, others cannot; if negative, never."""

    def exempts(self, pod: fw.Pod, priority: int, now: float) -> bool:
        """Return whether a pod of the class cannot be evicted by one of `priority`; `now`: seconds since 1970."""
        if priority >= self.minimum_preemptable_priority:
            return False
        if self.toleration_seconds < 0:
            return True
        found = next((each for each in pod.status.conditions or () if each.type == "PodScheduled"), None)
        if found is None or found.status != "True":
            return True  # placed just now
        return _seconds(found.last_transition_time) + self.toleration_seconds > now


def policy_of(priority_class: Any) -> Policy:
    """Return the policy of a PriorityClass. Raises ValueError, in Go's words, for a value that is no number."""
    content = priority_class.content
    annotations = content["metadata"].get("annotations") or {}
    least, seconds = annotations.get(MINIMUM_PREEMPTABLE_PRIORITY), annotations.get(TOLERATION_SECONDS)
    return Policy(
        content.get("value", 0) + 1 if least is None else _number(least, 2**31),
        0 if seconds is None else _number(seconds, 2**63),
    )


def _number(text: object, limit: int) -> int:
    number = parse_int64(text) if isinstance(text, str) else None
    if number is None or not -limit <= number < limit:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number


def _seconds(time: str | None) -> float:
    """Read when a condition changed, in seconds since 1970; long ago if it does not say."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else 0.0
    except ValueError:  # of a file that was not checked
        return 0.0


@dataclass
class PreemptionToleration(DefaultPreemption):
    """To be enabled in the place of DefaultPreemption, whose arguments it has.

    Rule: pkg/preemptiontoleration of scheduler-plugins.
    """

    name: ClassVar[str] = "PreemptionToleration"
    reads: ClassVar[Sequence[str]] = (POD_DISRUPTION_BUDGET, PRIORITY_CLASS)

    def exempt_from(self, preemptor: fw.Pod) -> Exempt:
        policies: dict[str, Policy | None] = {}
        now = self.handle.reader.now().timestamp()

        def is_exempt(pod: fw.Pod) -> bool:
            name = pod.spec.priority_class_name
            if not name:
                return False
            if name not in policies:
                policies[name] = self._policy(name)
            policy = policies[name]
            return policy is not None and policy.exempts(pod, preemptor.priority, now)

        return is_exempt

    def _policy(self, name: str) -> Policy | None:
        """Return the policy of a class; None for one that cannot be read: its pods tolerate nothing."""
        found = self.handle.objects.get(PRIORITY_CLASS, name)
        if found is None:
            raise fw.PluginError(self.name, "PostFilter", f'priorityclass.scheduling.k8s.io "{name}" not found')
        try:
            return policy_of(found)
        except ValueError:
            self.handle.metrics.plugin_data_faults.labels(self.name, "odd object").inc()
            return None
