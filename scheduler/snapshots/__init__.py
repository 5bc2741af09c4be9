"""Snapshots: everything in a cluster that affects where pods go, in one compressed file for `simulate`."""
