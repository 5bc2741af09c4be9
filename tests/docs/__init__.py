"""`make docs-test`: what README and docs say is done, on a real control plane.

pages      the pages, their blocks of code, links and headings
terminal   a shell that keeps its directory and variables from one block of a page to the next
stage      what a reader has before a page begins: a cluster with Loadmaster, and files of their own
files/     these files
test_*     commands are run, YAML and Python are judged by who reads them, links lead somewhere
"""
