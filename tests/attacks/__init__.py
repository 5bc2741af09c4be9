"""Objects that hurt: what whoever may create a pod can send, and what it does to everybody else's pods.

    python -m tests.attacks [NAME …]        runs them, one after the other; --list says what there is

`tests.attacks.catalog.ATTACKS` has all of them by name. An attack belongs in the file of what it attacks.
"""
