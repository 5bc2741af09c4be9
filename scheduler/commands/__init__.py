"""The commands: `loadmaster X` is `X.py`, which has its options and starts it.

They connect the other packages, which decide, watch and answer, and import nothing from this one.
"""
