"""HTTP to the API server: connections, calls with their limits and outcomes, and when a call is made again.

What is read or written by these calls is in the rooms beside this one.
"""
