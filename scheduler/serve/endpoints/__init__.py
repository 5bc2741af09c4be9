"""The port's endpoints: health, metrics, debug pages, explanations and recordings.

The page for a browser is in `scheduler.serve.page`.
"""
