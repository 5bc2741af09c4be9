"""Leader election: the Lease, the lock on it, and the fence that every write has to pass.

The rule and its reasons are in docs/design/kubernetes.md.
"""
