"""Stored answers of plugins, and what is made of them."""
