"""No module imports itself by way of others, imports within functions and for type checkers included."""

from graphlib import TopologicalSorter

import grimp


def test_there_are_no_circles_of_imports() -> None:
    graph = grimp.build_graph("scheduler", "plugins", cache_dir=None)

    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()
