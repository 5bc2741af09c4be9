"""Volumes, claims, and what CSI drivers report about them."""
