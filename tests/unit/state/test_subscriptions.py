"""What plugins listen to and share ends with their profile, and no sooner than with the last that needs it."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api.unstructured import Unstructured
from scheduler.state.objects import ObjectStore
from scheduler.state.subscriptions import ProfileObjects, ProfileShared, Sharing

BUDGETS = "budgets.v1.example.com"


class Index:
    """Something that is shared, and listens."""

    def __init__(self, objects: ProfileObjects) -> None:
        self.names: list[str] = []
        objects.listen(BUDGETS, self._changed)

    def _changed(self, old: Any, new: Any) -> None:
        self.names.append(new.metadata.name)


def hearing(heard: list[str], who: str = "") -> Callable[[Any, Any], None]:
    def hear(old: Any, new: Any) -> None:
        heard.append(f"{who}{new.metadata.name}")

    return hear


def a_budget(name: str) -> Unstructured:
    return Unstructured.from_dict({"metadata": {"name": name, "uid": name}})


class Stage:
    """A store that two profiles use."""

    def __init__(self) -> None:
        self.store, self.sharing = ObjectStore(), Sharing()
        self.store.watch([BUDGETS])
        self.objects = [ProfileObjects(self.store) for _ in range(2)]
        self.shared = [ProfileShared(self.sharing, objects) for objects in self.objects]

    def index(self, profile: int) -> Index:
        return self.shared[profile].get(Index, lambda: Index(self.objects[profile]))

    def close(self, profile: int) -> None:
        self.objects[profile].close()
        self.shared[profile].close()


def test_a_listener_ends_with_its_profile() -> None:
    stage, heard = Stage(), list[str]()
    for number, objects in enumerate(stage.objects):
        objects.listen(BUDGETS, hearing(heard, f"{number} "))

    stage.store.set(BUDGETS, a_budget("a"))
    stage.close(0)
    stage.store.set(BUDGETS, a_budget("b"))

    assert heard == ["0 a", "1 a", "1 b"]


def test_what_is_shared_goes_on_as_long_as_a_profile_uses_it_whoever_made_it() -> None:
    stage = Stage()
    index = stage.index(0)

    assert stage.index(1) is index
    stage.close(0)
    stage.store.set(BUDGETS, a_budget("a"))
    assert index.names == ["a"]
    stage.close(1)
    stage.store.set(BUDGETS, a_budget("b"))

    assert index.names == ["a"]
    assert stage.sharing.entries == {}


def test_what_nobody_used_any_more_is_made_anew() -> None:
    stage = Stage()
    index = stage.index(0)
    stage.close(0)

    assert stage.index(1) is not index


def test_what_cannot_be_made_leaves_no_listener() -> None:
    stage, heard = Stage(), list[str]()

    def make() -> Index:
        stage.objects[0].listen(BUDGETS, hearing(heard))
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        stage.shared[0].get(Index, make)
    stage.store.set(BUDGETS, a_budget("a"))

    assert heard == []
    assert stage.sharing.entries == {}
