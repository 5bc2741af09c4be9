"""Stored answers of plugins, and data derived from them."""
