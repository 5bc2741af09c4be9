"""Changes of pods that several plugins suggest."""

from scheduler import framework as fw


def toleration_of(taint: fw.Taint) -> fw.Change:
    """Add a toleration that covers this taint and no other."""
    toleration = {"key": taint.key, "operator": "Equal" if taint.value else "Exists", "effect": taint.effect}
    return fw.Change("add", "/spec/tolerations/-", toleration | ({"value": taint.value} if taint.value else {}))


def pointer(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
