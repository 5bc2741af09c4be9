"""Loadmaster: a Kubernetes scheduler with kube-scheduler's semantics. See docs/architecture.md for the rooms."""
