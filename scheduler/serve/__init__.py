"""HTTPS: the port, who may see what, the endpoints on it, and the page.

Nothing here talks to Kubernetes: reviews of tokens come through a Protocol.
"""
