"""The nodes as plugins see them: a column for each of their properties."""
