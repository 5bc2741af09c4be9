"""Nodes that are kept for a large group that has waited for too long, so that small pods cannot starve it."""
