"""The commands of `loadmaster`: what each takes, and what it does with the other rooms.

What a command does to decide, to watch or to answer lives in those rooms; nothing below imports this one.
"""
