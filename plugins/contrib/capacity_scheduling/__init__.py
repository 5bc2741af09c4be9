"""The plugin CapacityScheduling: shares of the cluster, by elastic quotas or by its arguments."""
