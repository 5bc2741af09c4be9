"""What the port answers by path: health, metrics, debug pages, explanations and recordings.

The page for a browser is in `scheduler.serve.page`.
"""
