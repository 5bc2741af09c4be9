"""Shares of a cluster at work: waiting pods, the changes that wake them, and writes to the quotas' objects."""
