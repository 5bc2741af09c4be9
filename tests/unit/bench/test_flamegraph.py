import re
from xml.etree import ElementTree

import pytest

from tests.bench.flamegraph import WIDTH, flame_graph, tree


def test_stacks_are_laid_over_each_other() -> None:
    root = tree([(("a", "b"), 3), (("a", "c"), 1), (("d",), 4)])

    assert (root.count, root.callees["a"].count, root.callees["a"].callees["b"].count) == (8, 4, 3)


def test_widths_are_shares_and_callees_lie_below_their_caller() -> None:
    svg = flame_graph("a & b", [(("outer <x>", "inner (plugins/p.py:1)"), 3), (("other",), 1)])

    boxes = {name: (float(x), float(width), int(y)) for x, width, y, name in re.findall(BOX, svg)}
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert boxes["all"][:2] == (0, WIDTH)
    assert boxes["outer &lt;x&gt;"][1] == boxes["inner (plugins/p.py:1)"][1] == 0.75 * WIDTH
    assert boxes["inner (plugins/p.py:1)"][2] > boxes["outer &lt;x&gt;"][2]
    assert "3 samples, 75.00 %" in svg


BOX = r'<g data-x="([\d.]+)" data-w="([\d.]+)" data-y="(\d+)" data-n="([^"]+)">'


def test_what_is_too_narrow_to_be_seen_is_left_out() -> None:
    assert "rare" not in flame_graph("t", [(("often",), 100_000), (("rare",), 1)])


def test_a_graph_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no samples"):
        flame_graph("t", [])
