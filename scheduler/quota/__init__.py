"""Shares of a cluster: who is guaranteed what, and what may be borrowed; numbers only."""
