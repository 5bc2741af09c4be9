"""Images that several nodes report are kept once."""

import pytest

from scheduler.api import node_images
from scheduler.api.node_images import share_images
from scheduler.api.objects import Node, node_from_dict
from scheduler.api.recent_caches import RecentCache


@pytest.fixture(autouse=True)
def _no_images_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_images, "_images", RecentCache("container images", 1 << 20))


def a_node(name: str, *images: tuple[str, int]) -> Node:
    reported = [{"names": [f"{image}@sha256:00", image], "sizeBytes": size} for image, size in images]
    return node_from_dict({"metadata": {"name": name}, "status": {"images": reported}})


def test_nodes_with_the_same_images_share_them() -> None:
    first, second = a_node("a", ("app:1", 5), ("db:1", 7)), a_node("b", ("db:1", 7))
    share_images(first, None)

    share_images(second, None)

    assert first.status.images is not None
    assert second.status.images is not None
    assert second.status.images[0] is first.status.images[1]
    assert second == a_node("b", ("db:1", 7))


def test_an_image_of_another_size_is_another_one() -> None:
    first, second = a_node("a", ("app:1", 5)), a_node("b", ("app:1", 6))
    share_images(first, None)

    share_images(second, None)

    assert second == a_node("b", ("app:1", 6))


def test_a_report_that_changes_no_image_has_those_of_the_report_before() -> None:
    before, after = a_node("a", ("app:1", 5)), a_node("a", ("app:1", 5))

    share_images(after, before)

    assert after.status.images is before.status.images


def test_a_node_without_images_stays_without() -> None:
    node = node_from_dict({"metadata": {"name": "a"}})

    share_images(node, None)

    assert node.status.images is None
