"""The order in which pods are tried, and the events that make a refused pod worth another attempt."""
