"""Single reads that a watch does not cover: how a pod ended, whole pods for extenders, what plugins ask for.

Lists and watches are in `scheduler.kube.informers`.
"""
