"""Which pod is tried next, and when a pod that was refused is worth another attempt."""
