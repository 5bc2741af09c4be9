"""Explains why a pod is pending and what would help, from the engine of `run` or one over files.

`screen.py` lays the answer out; its sentences come from the plugins' obstacles, `quota/sentences.py` and
`groups/records.py`. Decisions are made in `cycle`; the command `loadmaster explain` is in `commands`.
"""
