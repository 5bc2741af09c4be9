"""Why is this pod pending, and what would help? Asked of the engine of `run`, or of one over files."""
