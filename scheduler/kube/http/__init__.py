"""HTTP to the API server: connections, calls with their limits and outcomes, and when a call is made again.

The calls themselves are in the packages next to this one.
"""
