"""What an attack is: a name, a sentence, and the objects."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Where an attack takes place."""

    namespace: str
    """Exists, and is the attack's own: everything in it is deleted afterwards. Objects need not name it."""
    nodes: Sequence[str]
    """The names of nodes that exist, at least one. A pod that names one as its `nodeName` runs there."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Hostile objects that a real API server takes."""

    name: str
    attacks: str
    """What it attacks, in a sentence."""
    objects: Callable[[Target], Iterator[Object]]
    """Make the objects, in the order in which they are to be created; each has a name and a kind of its own."""
    recreated: bool = False
    """Whether they are to be deleted and created again all the time, and not just be there."""
