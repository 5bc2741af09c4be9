"""Kubernetes objects in files: YAML and JSON as documents, with the line of each problem.

What the objects become is in `scheduler.simulate.apiserver`.
"""
