"""Extenders: the webhooks that have a say in where a pod goes, and the decisions and bindings that ask them.

HTTP itself is in scheduler.kube.
"""
