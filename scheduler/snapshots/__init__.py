"""Snapshots: all of a cluster that decides where pods go, and nothing else, in one packed file for `simulate`."""
