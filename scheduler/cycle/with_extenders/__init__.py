"""Decisions and bindings with extenders: the same steps, with waits in between.

The extenders' requests and answers are in `scheduler.extenders`; HTTP is in `scheduler.kube`.
"""
