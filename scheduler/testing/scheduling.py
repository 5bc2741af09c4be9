"""One decision of one plugin, made as the scheduler makes it."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.evaluation import Evaluation
from scheduler.framework.plugin import Plugin
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework
from scheduler.state.nominator import Nominator
from scheduler.testing.handles import Cluster, GivenObjects, a_handle, check_objects, profile_of
from scheduler.testing.objects import as_kept


@dataclass(frozen=True, slots=True)
class Decision:
    """The answers of a plugin, alone in its profile, about a pod."""

    refusals: Mapping[str, Status]
    """Node name → why the pod cannot run there, for those that are refused."""

    scores: Mapping[str, int]
    """Node name → its score, 0 to 100, for all others; 0 from a plugin that does not score."""

    @property
    def best(self) -> frozenset[str]:
        """The nodes with the highest score: the pod runs on one of these."""
        highest = max(self.scores.values(), default=0)
        return frozenset(name for name, score in self.scores.items() if score == highest)


def schedule(plugin: Plugin, pod: Pod, nodes: Cluster, objects: GivenObjects = None) -> Decision:
    """Start `plugin` over these nodes and objects and let it decide about `pod`, from PreFilter to NormalizeScore.

    Nothing is bound. Raises PluginError for what it raises, and for answers that its extension points do not allow;
    ConfigError if it does not start, LookupError for objects of a resource that it does not name.
    """
    pod, nodes = as_kept(pod, raw=plugin.reads_raw_pods), nodes.as_kept(raw=plugin.reads_raw_pods)
    plugins, handle = profile_of(plugin), a_handle(nodes, objects)
    plugins.start(handle)
    check_objects(plugin, objects)
    framework = Framework(plugins, handle, nodes, Nominator(), handle.metrics)
    found = Evaluation(Algorithm(nodes), framework, pod, nominated_first=False)
    scores = dict(zip(found.feasible_names, found.scores.total.tolist(), strict=True))
    return Decision(dict(found.node_to_status), scores)
