"""The container images of the nodes. Rule: pkg/scheduler/backend/cache/cache.go (addNodeImageStates)."""

from collections.abc import KeysView
from types import MappingProxyType

from scheduler.api.objects import Node
from scheduler.api.read_only import read_only_attribute


class ImageRows:
    """Implements framework.nodes.ImageState: one image name. `size` is what the first node that reported it gave."""

    __slots__ = ("_by_row", "_rows", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._by_row: dict[int, None] = {}  # written by the ImageTable alone
        self._rows = self._by_row.keys()

    size: int = read_only_attribute("_size")
    rows: KeysView[int] = read_only_attribute("_rows")


class ImageTable:
    """Every image name on any node."""

    def __init__(self) -> None:
        self.states: dict[str, ImageRows] = {}
        self.shown = MappingProxyType(self.states)

    def add(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                state = self.states.get(name)
                if state is None:
                    state = self.states[name] = ImageRows(image.size_bytes)
                state._by_row[row] = None

    def is_resized_by(self, node: Node) -> bool:
        """Return whether an image changes its size when `node`, which has it, reports it again.

        It does if the node that gave the size is gone, gave another one, and no other node has the image.
        """
        states = self.states
        for image in node.status.images or ():
            size = image.size_bytes
            for name in image.names or ():
                state = states.get(name)
                if state is not None and state._size != size and len(state._by_row) == 1:
                    return True
        return False

    def remove(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                state = self.states.get(name)
                if state is not None:
                    state._by_row.pop(row, None)
                    if not state.rows:
                        del self.states[name]
