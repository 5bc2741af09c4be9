"""What several plugins say of a node, and suggest."""

from scheduler import framework as fw
from scheduler.api.tolerations import UNSCHEDULABLE_TAINT


def cordoned(node_name: str) -> fw.Obstacle:
    """The one obstacle of a cordoned node, which two plugins see: `spec.unschedulable`, and a taint beside it."""
    change = toleration_of(UNSCHEDULABLE_TAINT)
    return fw.Obstacle("cordoned", (fw.Remedy(f"uncordon {node_name}", (change,), f"kubectl uncordon {node_name}"),))


def toleration_of(taint: fw.Taint) -> fw.Change:
    """Add a toleration that covers this taint and no other."""
    toleration = {"key": taint.key, "operator": "Equal" if taint.value else "Exists", "effect": taint.effect}
    return fw.Change("add", "/spec/tolerations/-", toleration | ({"value": taint.value} if taint.value else {}))


def pointer(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
