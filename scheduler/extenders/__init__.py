"""Extenders: the webhooks that have a say in where a pod goes. HTTP itself is in scheduler.kube."""
