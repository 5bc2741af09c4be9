"""Quantities as Kubernetes writes, reads and rounds them."""
