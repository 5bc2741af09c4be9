"""Loadmaster: a Kubernetes scheduler with kube-scheduler's semantics. docs/architecture.md lists the packages."""
