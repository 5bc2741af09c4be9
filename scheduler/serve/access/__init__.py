"""Authentication and authorization of the port's clients, as in kube-scheduler.

The API server is asked through Protocols that `scheduler.kube.services` implements.
"""
