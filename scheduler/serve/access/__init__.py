"""Who asks, and what they may see, as kube-scheduler decides it.

The API server is asked through Protocols that `scheduler.kube.services` implements.
"""
