"""What can show on a generated cluster, a file a topic."""
