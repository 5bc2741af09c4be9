"""Kubernetes objects as data: structs, quantities, selectors, tolerations. Pure: no I/O, no clock, no other package."""
