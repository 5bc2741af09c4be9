"""Searches for wrong answers over many random clusters, each with a command: `python -m tests.campaigns.NAME`."""
