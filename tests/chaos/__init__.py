"""Chaos: Loadmaster on the real control plane, behind a proxy of the tests that makes trouble.

    python -m tests.chaos --rounds 20 --seed 1

A round makes nodes and pods while several faults are at work, ends the faults, waits until the scheduler is quiet, and
judges what became of it. All rounds share a control plane and, unless killed, the scheduler, so that leaks add up.

    plan.py      what a round does: a pure function of seed and number
    proxy.py     between scheduler and API server: freezes, resets, refuses, throttles, loses answers
    record.py    what went through: bindings, and what the scheduler was told and when
    faults.py    the faults of a plan, done and undone
    load.py      nodes and pods
    judge.py     who may wait, and which node has room: written without the scheduler's code
    verdict.py   what must hold after a round
    rounds.py    a round from start to verdict
"""
