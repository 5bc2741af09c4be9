"""Who the scheduler is to the API server: service account, kubeconfig, exec plugins, TLS files.

Who its own clients are is judged in `scheduler.serve.access`.
"""
