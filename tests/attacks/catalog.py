"""All attacks by name."""

from collections.abc import Mapping
from typing import Final

from tests.attacks import affinity, counts, devices, memory, nesting
from tests.attacks.attack import Attack

ATTACKS: Final[Mapping[str, Attack]] = {
    each.name: each
    for each in (*affinity.ATTACKS, *counts.ATTACKS, *devices.ATTACKS, *memory.ATTACKS, *nesting.ATTACKS)
}
