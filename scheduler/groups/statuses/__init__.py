"""The statuses and conditions of groups' objects, and the writer of both."""
