"""A module for each topic. A check is a coroutine of facts and cluster that returns findings, and knows no other check.

A ClusterError that it raises is a finding, too: what could not be checked, and why. `examination.CHECKS` lists all.
"""
