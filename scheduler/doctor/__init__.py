"""Examines an installation from outside, for `loadmaster doctor`: facts are collected once, then each check looks at
some of them.

    Cluster ──► facts ──► checks ──► findings ──► a line each
    └─── evidence/ ──┘    checks/    examination.py   commands/doctoring.py

A fact that cannot be read costs only the lines that need it, and these say why. Nothing is written except reviews and a
token.
"""
