from hypothesis import given
from hypothesis import strategies as st

from scheduler.framework.queued import QueuedPod
from scheduler.queue.entity_heap import EntityHeap
from tests.unit.queue.fakes import a_waiting_pod


def by_priority(queued: QueuedPod) -> int:
    return -queued.pod.priority


def a_heap(**priorities: int) -> EntityHeap[QueuedPod]:
    heap = EntityHeap[QueuedPod](by_priority)
    for uid, priority in priorities.items():
        heap.add(QueuedPod(a_waiting_pod(uid, priority=priority), 0.0))
    return heap


def drain(heap: EntityHeap[QueuedPod]) -> list[str]:
    uids = []
    while (queued := heap.pop()) is not None:
        uids.append(queued.pod.uid)
    return uids


def test_pods_leave_in_the_order_of_their_keys_and_equals_in_the_order_they_came() -> None:
    assert drain(a_heap(a=0, b=5, c=0, d=9)) == ["d", "b", "a", "c"]


def test_peek_leaves_the_pod_where_it_is() -> None:
    heap = a_heap(a=0, b=1)

    first = heap.peek()

    assert first is not None
    assert first.pod.uid == "b"
    assert drain(heap) == ["b", "a"]


def test_a_removed_pod_is_gone_from_any_place() -> None:
    heap = a_heap(a=0, b=1, c=2)

    heap.remove("c")
    heap.remove("a")

    assert heap.remove("a") is None
    assert (len(heap), "a" in heap, heap.get("b") is not None) == (1, False, True)
    first = heap.peek()
    assert first is not None
    assert first.pod.uid == "b"
    assert drain(heap) == ["b"]


def test_a_pod_whose_key_changed_moves() -> None:
    heap = a_heap(a=0, b=1)
    queued = heap.get("a")
    assert queued is not None

    queued.pod = a_waiting_pod("a", priority=2)
    heap.rekey("a")

    heap.check_invariants()
    assert drain(heap) == ["a", "b"]


def test_a_pod_that_moves_back_leaves_nothing_in_its_old_place() -> None:
    heap = a_heap(a=2, b=1)
    queued = heap.get("a")
    assert queued is not None

    queued.pod = a_waiting_pod("a", priority=0)
    heap.rekey("a")

    assert drain(heap) == ["b", "a"]


def test_a_pod_whose_key_is_the_same_keeps_its_place_among_equals() -> None:
    heap = a_heap(a=0, b=0)

    heap.rekey("a")

    assert drain(heap) == ["a", "b"]


def test_what_removed_pods_leave_behind_is_swept() -> None:
    heap = a_heap(**{f"p{number}": 0 for number in range(1000)})

    for number in range(990):
        heap.remove(f"p{number}")

    assert len(heap._heap) < 100
    assert drain(heap) == [f"p{number}" for number in range(990, 1000)]


def test_an_empty_heap_has_no_first_pod() -> None:
    heap = a_heap()

    assert heap.pop() is None
    assert heap.peek() is None
    assert heap.remove("a") is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "rekey", "pop"]), st.integers(0, 4), st.integers(0, 3)),
        max_size=200,
    )
)
def test_any_sequence_of_operations_pops_what_a_sorted_list_would(steps: list[tuple[str, int, int]]) -> None:
    heap = EntityHeap[QueuedPod](by_priority)
    model: dict[str, tuple[int, int]] = {}  # UID → (key, number of its arrival there)
    for number, (step, name, priority) in enumerate(steps):
        uid = str(name)
        if step == "add" and uid not in model:
            heap.add(QueuedPod(a_waiting_pod(uid, priority=priority), 0.0))
            model[uid] = (-priority, number)
        elif step == "remove":
            assert (heap.remove(uid) is not None) == (model.pop(uid, None) is not None)
        elif step == "rekey" and (queued := heap.get(uid)) is not None:
            queued.pod = a_waiting_pod(uid, priority=priority)
            heap.rekey(uid)
            if model[uid][0] != -priority:
                model[uid] = (-priority, number)
        elif step == "pop":
            first, popped = heap.peek(), heap.pop()
            assert first is popped
            expected = min(model, key=model.__getitem__, default=None)
            assert (popped.pod.uid if popped is not None else None) == expected
            model.pop(expected or "", None)
        heap.check_invariants()
        assert {queued.pod.uid for queued in heap} == set(model)
