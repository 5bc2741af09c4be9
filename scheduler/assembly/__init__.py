"""Assembles a running scheduler, with its port and its reloads, for `run` and `run --shadow-of`."""
