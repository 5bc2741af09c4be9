"""Texts for people: put together, and kept short."""
