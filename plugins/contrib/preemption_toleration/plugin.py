"""Evict as DefaultPreemption does, but no pods whose PriorityClass says that they tolerate it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.contrib.preemption_toleration.policies import Policy, policy_of
from plugins.default_preemption.plugin import DefaultPreemption
from plugins.shared.eviction.budgets import POD_DISRUPTION_BUDGET
from plugins.shared.eviction.candidates import Exempt
from scheduler import framework as fw

PRIORITY_CLASS: Final = "priorityclasses.v1.scheduling.k8s.io"


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
