"""The nodes as a table, and the pods on each."""
