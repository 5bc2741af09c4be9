"""Whether what `explain` suggests is true."""
