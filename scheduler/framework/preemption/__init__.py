"""Evictions: the dry run that plugins are given, and the victims that they answer."""
