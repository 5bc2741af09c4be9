"""The assembly of a running scheduler, for `run` and for `run --shadow-of`, with its port and its reloads."""
