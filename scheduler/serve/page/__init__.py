"""The page: the cluster, the queue and the decisions of a running scheduler, as they are now, in a browser."""
