from hypothesis import given
from hypothesis import strategies as st

from scheduler.framework.queued import QueuedPod
from scheduler.queue.entity_heap import EntityHeap
from tests.unit.queue.fakes import a_waiting_pod


def by_priority(queued: QueuedPod) -> int:
    return -queued.pod.priority


def test_what_removed_pods_leave_behind_is_swept() -> None:
    heap = EntityHeap[QueuedPod](by_priority)
    for number in range(1000):
        heap.add(QueuedPod(a_waiting_pod(f"p{number}"), 0.0))

    for number in range(990):
        heap.remove(f"p{number}")

    assert len(heap._heap) < 100
    assert {queued.pod.uid for queued in heap} == {f"p{number}" for number in range(990, 1000)}


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
        assert (len(heap), uid in heap) == (len(model), uid in model)
