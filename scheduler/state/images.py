"""Which nodes have which container images. Rule: pkg/scheduler/backend/cache/cache.go (addNodeImageStates)."""

from scheduler.api.objects import Node


class ImageState:
    """One image name. `size` is in bytes, as the first node that reported the name gave it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class ImageTable:
    """Every image name on any node."""

    def __init__(self) -> None:
        self.states: dict[str, ImageState] = {}

    def add(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                state = self.states.get(name)
                if state is None:
                    state = self.states[name] = ImageState(image.size_bytes)
                state.rows.add(row)

    def remove(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                state = self.states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del self.states[name]
