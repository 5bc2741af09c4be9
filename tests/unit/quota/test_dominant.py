import math

from scheduler.quota.dominant import dominant_share
from scheduler.quota.tree import Share, ShareTree


def tree(weight: float = 1.0) -> ShareTree:
    return ShareTree(
        [
            Share(name="root"),
            Share(name="a", parent="root", minimum={"cpu": 2, "gpu": 1}, weight=weight),
            Share(name="b", parent="root", minimum={"cpu": 8, "gpu": 9}),
        ]
    )


def test_of_equal_resources_the_first_by_name_is_dominant() -> None:
    shares = tree()

    shares.add("a", {"cpu": 4, "gpu": 3})

    assert dominant_share(shares, "a").resource == "cpu"


def test_a_share_without_weight_that_borrows_comes_last() -> None:
    shares = tree(weight=0.0)

    assert dominant_share(shares, "a").weighted == 0

    shares.add("a", {"cpu": 3})
    before = dominant_share(shares, "a")
    shares.add("a", {"cpu": 1})
    assert before.weighted == math.inf
    assert before.key < dominant_share(shares, "a").key
