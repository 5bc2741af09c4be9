"""The format of a trace: its lines, its file, its time.

Recording and replaying are one floor up.
"""
