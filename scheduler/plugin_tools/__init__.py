"""What `loadmaster plugins` is made of: a description of a plugin, a beginning for a new one, what one costs.

Finding and loading plugins is `scheduler.plugin_loading`'s.
"""
