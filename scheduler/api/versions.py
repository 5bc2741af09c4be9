"""Resource versions, and the newer of two."""


def is_newer(version: str, other: str) -> bool:
    """Return whether a resource version is newer than another one of the same resource.

    Since KEP-5504 they are whole numbers of any length without leading zeros, and comparing them is allowed.
    """
    return (len(version), version) > (len(other), other)


def newest_of(*versions: str) -> str:
    """Return the newest of some versions of one resource; empty ones are the oldest."""
    return max(versions, key=lambda version: (len(version), version))
