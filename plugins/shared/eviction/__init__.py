"""Victims: which pods may go, which budgets protect them, and how they are evicted."""
