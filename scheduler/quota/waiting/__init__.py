"""Shares of a cluster at work: who waits for which, what wakes them, and what is written to the quotas' objects."""
