"""The API server's changes to objects before a scheduler sees them: defaults, admission, validation.

Pods that controllers make are in `scheduler.simulate.controllers`.
"""
