"""Benchmarks: kube-scheduler's own workloads against it on a real API server, a decision, and waiting pods.

`make bench`, `make bench-report`, `make bench-cycle`, `make bench-queue`.
"""
