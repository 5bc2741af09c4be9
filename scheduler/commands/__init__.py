"""The commands: `loadmaster X` is `X.py`, which has its options and starts it; they connect the other packages.

How to decide, watch or answer is in those packages, and they import nothing from this one.
"""
