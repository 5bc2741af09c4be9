"""The port itself: connections within limits, TLS, certificates, requests and streams.

What is answered is in `scheduler.serve.endpoints` and `scheduler.serve.page`.
"""
