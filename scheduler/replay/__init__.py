"""Traces: what a scheduler has seen and decided, recorded, and decided once more."""
