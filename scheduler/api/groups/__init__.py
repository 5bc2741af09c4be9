"""The APIs by which pods are a group, and the workloads that make them."""
