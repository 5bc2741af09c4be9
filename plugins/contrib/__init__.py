"""Plugins that ship with Loadmaster and are no part of kube-scheduler: a profile has them only if it names them."""

from typing import Final

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from plugins.contrib.coscheduling.plugin import Coscheduling
from plugins.contrib.load_aware.plugin import LoadAware
from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch
from plugins.contrib.preemption_toleration import PreemptionToleration
from scheduler.framework import Plugin

CONTRIB: Final[dict[str, type[Plugin]]] = {
    "CapacityScheduling": CapacityScheduling,
    "Coscheduling": Coscheduling,
    "LoadAware": LoadAware,
    "NodeResourceTopologyMatch": NodeResourceTopologyMatch,
    "PreemptionToleration": PreemptionToleration,
}
"""By the name that a configuration has for them."""
