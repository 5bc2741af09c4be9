"""Our view of the cluster: the node table, the pods on it, and the assumptions we make ahead of the watch."""
