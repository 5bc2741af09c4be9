"""What a user asks from outside: of a running scheduler, of a cluster, or of files."""
