"""Writes to the API server: bindings, status patches, Events, evictions and the writes of plugins.

Whether this replica may write at all is decided in `scheduler.kube.election`.
"""
