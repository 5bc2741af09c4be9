"""What makes a running scheduler of the parts: for `run` and for `run --shadow-of`, with its port and its reloads."""
