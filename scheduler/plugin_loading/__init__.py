"""Loads plugins that are not in-tree: from files in directories, modules, and entry points of installed packages.

Each is found, tried out in a child process, and checked before it is used; `scheduler.runtime` runs them.
"""
