"""Hostile input for everything that reads what others wrote: see `targets` for what, `__main__` for how."""
