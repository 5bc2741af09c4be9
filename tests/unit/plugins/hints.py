"""What a plugin makes of an event, as the queue asks it."""

from typing import Any

from scheduler import framework as fw
from scheduler.framework.events import ASSIGNED_POD_DELETE, NODE_ADD

NODE_ADDED = NODE_ADD
NODE_LABELLED = fw.ClusterEvent(fw.NODE, fw.Action.UPDATE_NODE_LABEL)
NODE_TAINTED = fw.ClusterEvent(fw.NODE, fw.Action.UPDATE_NODE_TAINT)
NODE_RESIZED = fw.ClusterEvent(fw.NODE, fw.Action.UPDATE_NODE_ALLOCATABLE)
POD_DELETED = ASSIGNED_POD_DELETE
POD_SCALED_DOWN = fw.ClusterEvent(fw.ASSIGNED_POD, fw.Action.UPDATE_POD_SCALE_DOWN)
TOLERATION_ADDED = fw.ClusterEvent(fw.TARGET_POD, fw.Action.UPDATE_POD_TOLERATION)


def wakes(plugin: fw.Plugin, pod: fw.Pod, event: fw.ClusterEvent, old: Any, new: Any) -> bool:
    """Whether `pod`, which the plugin refused, is worth another attempt. The plugin must have registered for it."""
    registered = [each for each in plugin.events_to_register() if each.event.matches(event)]
    assert registered, f"{plugin.name} does not see {event.label}"
    return any(each.hint is None or each.hint(pod, old, new) is fw.QueueingHint.QUEUE for each in registered)
