"""The scheduler's identity at the API server: service account, kubeconfig, exec plugins, TLS files.

The scheduler's own clients are authenticated in `scheduler.serve.access`.
"""
