"""What the container image holds, against what it should hold."""
