"""The same engine over files instead of a cluster."""
