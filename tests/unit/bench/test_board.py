from tests.bench.board import Board, Group, PodRecord


def test_a_pod_is_bound_when_it_was_first_seen_and_counts_for_its_group() -> None:
    texts = iter(["watching\n1.5 a/x a/y\n2.0 a/", "z b/other\n3.0 a/x\n"])
    board = Board(lambda: next(texts))
    group = Group()
    for name in "xyz":
        board.expect(PodRecord("a", name, {"n": name}), group)

    board.refresh()
    assert (group.bound, group.complete) == (2, False)
    board.refresh()

    assert (group.bound, group.complete, board.bound) == (3, True, 5)
    assert [pod.bound for pod in group.pods] == [1.5, 1.5, 2.0]
    assert [pod.name for pod in board.select(["a"], {"n": "z"})] == ["z"]
    assert list(board.select(["b"], {})) == []
