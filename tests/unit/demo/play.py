"""A model with a little history, for the tests of what is made of it."""

from tests.demo.facts import Node, Pod, Refusal
from tests.demo.model import Model

NODES = (
    Node("a-1", "zone-a", 8000),
    Node("a-10", "zone-a", 8000, cordoned=True),
    Node("a-2", "zone-a", 16000, gpus=2),
    Node("b-1", "zone-b", 8000),
)
MESSAGE = (
    "0/4 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
)


def a_model() -> Model:
    """Two `web` pods were bound, 0.1 s and 0.3 s after their creation; `huge` waits since second 2."""
    model = Model()
    for node in NODES:
        model.apply(0.0, node)
    for name in ("web-1", "web-2"):
        model.apply(1.0, Pod(name, "web", 2000))
    model.apply(1.1, Pod("web-1", "web", 2000, "a-1"))
    model.apply(1.3, Pod("web-2", "web", 2000, "b-1"))
    model.apply(2.0, Pod("huge-1", "huge", 48000))
    model.apply(2.2, Refusal("huge-1", MESSAGE))
    return model


def let_huge_be_bound(model: Model) -> None:
    """A node joins in second 9 and `huge` is bound to it 40 ms later."""
    model.apply(9.0, Node("b-2", "zone-b", 64000))
    model.apply(9.04, Pod("huge-1", "huge", 48000, "b-2"))
