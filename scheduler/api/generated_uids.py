"""UIDs of objects that have none yet, the same in every run: choices among equal nodes depend on them."""

import uuid
from typing import Final

UIDS: Final = uuid.UUID("6f1c6b0e-6d0a-4f43-9d1a-3a1f0c7f8f5d")


def uid_of(kind: str, namespace: str, name: str) -> str:
    """Return the UID of an object that has none yet."""
    return str(uuid.uuid5(UIDS, f"{kind}/{namespace}/{name}"))
