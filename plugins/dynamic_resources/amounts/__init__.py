"""Devices that stand for resources of their node, such as cpu and memory, or cost some."""
