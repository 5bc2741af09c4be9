"""`make demo`: Loadmaster on a real control plane with fake nodes, to look at for half a minute.

cast       the nodes and Deployments                            pure
facts      what a watch event says, in our words                pure
model      what has happened so far, and at which rate          pure
view       a frame of the live display                          pure: model in, rich renderables out
report     plain lines and the summary                          pure
scenes     what happens, in which order, until when
folder     what you may change while it stays
feed       the watches, in a thread of their own
screen     a live display, or lines where there is no terminal for it
director   plays the scenes and watches over the scheduler
command    starts everything, ends everything, says what failed
"""
