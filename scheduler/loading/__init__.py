"""Loading plugins that are not in-tree: files in directories, modules, entry points of installed packages.

    sources ──► read ──► tried out in a child process ──► loaded into this one ──► registry
    (names)    (bytes)   (what hangs or exits, does so there)  (a change of files is a new load)

Nothing is loaded from a place that the configuration, a flag or an entry point does not name.
"""
