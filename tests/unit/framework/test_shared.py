from scheduler.framework.handle import Shared


def test_an_object_is_made_once_for_each_class() -> None:
    shared = Shared()

    first = shared.get(list, lambda: [1])
    second = shared.get(list, lambda: [2])
    other = shared.get(dict, dict)

    assert first is second
    assert (first, other) == ([1], {})
