"""What Loadmaster is to reach: pods a second, as a multiple of kube-scheduler's in the same run."""

import re
from typing import Final

LIFTED: Final[tuple[tuple[str, float], ...]] = (
    (r"SchedulingBasic/", 1.8),
    (r"SchedulingDaemonset/", 1.5),
    (r"(SchedulingNodeAffinity|SchedulingSecrets|SchedulingWithMixedChurn|MixedSchedulingBasePod)/", 1.5),
    (r"((Preferred)?TopologySpreading|SchedulingWithNodeInclusionPolicy)/", 3.0),
    (r"Scheduling(Required|Preferred)?(Pod)?(Anti)?Affinity\w*/", 4.0),
    (r"Scheduling(InTree|MigratedInTree|CSI)PVs/", 1.5),
    (r"(Preemption(Basic|Async)|Unschedulable|Scheduling(While)?Gated\w*)/", 2.0),
    (r"Gangs/", 4.0),
    (r"SchedulingWithResourceClaim\w*/|SteadyState\w*/", 1.0),
)
"""Of workloads by the beginning of their name, with kube-scheduler's client limits lifted."""

AS_THEY_COME: Final[tuple[tuple[str, float], ...]] = ((r"SchedulingBasic/", 10.0),)
"""With the default settings of both."""


def aim(workload: str, *, lifted: bool) -> float | None:
    """The ratio to be reached, None where there is no aim."""
    for pattern, ratio in LIFTED if lifted else AS_THEY_COME:
        if re.match(pattern, workload):
            return ratio
    return None
