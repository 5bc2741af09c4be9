"""The APIs that make pods a group, and the workloads that create such pods."""
