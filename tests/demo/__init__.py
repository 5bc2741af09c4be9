"""`make demo`: Loadmaster on a real control plane with fake nodes, to look at for half a minute.

scenes     the nodes and Deployments, and what happens in which order
model      what the watches have reported so far
feed       the watches, in a thread of their own
view       what is shown: a live display, or lines where there is no terminal for it
restarts   what happens when the scheduler ends
command    starts everything, plays the scenes, ends everything, says what failed
"""
