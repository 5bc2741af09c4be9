"""The pods and claims that controllers make of workloads, DaemonSets and templates.

Names and UIDs are generated the same in every run.
"""
