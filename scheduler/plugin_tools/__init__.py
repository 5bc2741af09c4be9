"""The parts of `loadmaster plugins`: descriptions of plugins, a skeleton for a new one, and benchmarks.

Finding and loading plugins is `scheduler.plugin_loading`'s.
"""
