"""Groups of scheduling.k8s.io as the API server under test has them.

Kubernetes 1.37 serves another version of their API than 1.36, and has fewer feature gates for them.
"""

import os
from typing import Final

import pytest

from tests.controlplane.versions import OWN, chosen

NEWER: Final = chosen(os.environ) == OWN
API: Final = f"scheduling.k8s.io/{'v1beta1' if NEWER else 'v1alpha2'}"
GROUP: Final = f"{API}/PodGroup"
CONDITION: Final = "PodGroupInitiallyScheduled" if NEWER else "PodGroupScheduled"

WORKLOAD: Final = "GenericWorkload"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
GATES: Final = f"{WORKLOAD}=true,{TOPOLOGY}=true"
COMPOSITE_GATES: Final = f"{GATES},CompositePodGroup=true"
COMPOSITE: Final = "scheduling.k8s.io/v1alpha3"
COMPOSITE_APIS: Final = f"{COMPOSITE}=true,{API}"
"""Those of Loadmaster and of kube-scheduler."""
SERVED_GATES: Final = GATES if NEWER else f"{GATES},GangScheduling=true,WorkloadAwarePreemption=true"
"""Those of the API server."""

served = pytest.mark.skipif(
    chosen(os.environ) in ("1.34", "1.35"), reason="PodGroups: before 1.36 there are none of this kind"
)
compared = pytest.mark.skipif(
    not NEWER, reason="PodGroups beside kube-scheduler: that of 1.37 reads those of 1.37 only"
)
