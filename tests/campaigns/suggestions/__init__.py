"""Whether what `explain` suggests is true, and whether it leaves something smaller out."""
