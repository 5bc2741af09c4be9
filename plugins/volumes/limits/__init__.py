"""The number of volumes that nodes can still attach."""
