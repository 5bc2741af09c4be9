"""The APIs that say who may use how much."""
