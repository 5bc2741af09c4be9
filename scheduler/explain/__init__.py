"""Explains why a pod is pending and what would help, from the engine of `run` or one over files.

Decisions are made in `cycle`; the command `loadmaster explain` is in `commands`.
"""
