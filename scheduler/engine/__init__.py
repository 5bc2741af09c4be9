"""The scheduler without its connection to a cluster: the composition root of the cycle, groups, quota and extenders."""
