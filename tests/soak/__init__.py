"""A long run: pods come and go, hostile ones among them, and nothing that the scheduler has may grow.

    python -m tests.soak [--minutes 30] [--out build/soak]

It writes `samples.jsonl`, `memory.svg` and `state.svg`, prints what it found, and fails if something grew.
"""
