"""Plugins that are not in-tree, from files in directories, modules and entry points of installed packages to classes.

Running them is `scheduler.runtime`'s; here each is found, tried out in a child process, and checked before it is used.
"""
