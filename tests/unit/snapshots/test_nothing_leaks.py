"""No text that a person wrote stands in an anonymised snapshot, in whatever field it stood."""

import json
import os
from typing import Final

import pytest

from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import KINDS, Kind
from scheduler.snapshots.reduction import Reduction
from tests.unit.snapshots.planted import MARK, Planting

OBJECTS: Final = int(os.environ.get("ANONYMISED_OBJECTS", "12"))
"""Of each kind."""


@pytest.mark.parametrize("words", [0.0, 0.5, 0.8], ids=["no words of Kubernetes", "half", "most"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_field_of_any_kind_leaks(kind: Kind, words: float) -> None:
    found: dict[str, str] = {}
    for seed in range(OBJECTS):
        planting = Planting(seed, words)
        planted = json.dumps(planting.object_of(kind.name)).encode()
        reduced = Reduction(Aliases()).reduced(planted, kind).decode()
        found |= dict.fromkeys(planting.leaks(reduced), f"seed {seed}")

    assert found == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_leak_would_be_seen(kind: Kind) -> None:
    planting = Planting(0, 0.0)
    planted = json.dumps(planting.object_of(kind.name)).encode()

    assert planting.leaks(Reduction().reduced(planted, kind).decode())
    assert MARK not in Reduction(Aliases()).reduced(b"{}", kind).decode()
