"""What changes on a node when a pod comes or goes."""

from scheduler.api.pod import Pod
from scheduler.framework.nodes import Aspect

POD_ASPECTS = Aspect.REQUESTED | Aspect.PODS | Aspect.STARTS
_POD_AND_PORTS = POD_ASPECTS | Aspect.PORTS
_POD_AND_VOLUMES = POD_ASPECTS | Aspect.VOLUMES


def aspects_of(pod: Pod) -> Aspect:
    """What changes on a node with a pod that comes or goes."""
    if pod.storage.volumes:
        return _POD_AND_VOLUMES | (Aspect.PORTS if pod.host_ports else Aspect(0))
    return _POD_AND_PORTS if pod.host_ports else POD_ASPECTS
