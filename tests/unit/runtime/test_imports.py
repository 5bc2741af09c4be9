import grimp


def test_no_modules_of_the_engine_import_each_other_in_a_circle() -> None:
    """Imports for types only count, too."""
    graph = grimp.build_graph("scheduler", cache_dir=None)
    engine = {module for module in graph.modules if module.startswith("scheduler.runtime.")}

    circles = {
        (module, imported)
        for module in engine
        for imported in graph.find_modules_directly_imported_by(module) & engine
        if graph.chain_exists(importer=imported, imported=module)
    }
    assert circles == set()
