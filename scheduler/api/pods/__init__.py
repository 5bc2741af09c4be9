"""Pods: the parts of them that decisions read."""
