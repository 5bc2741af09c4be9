"""How large the scheduler gets and what it costs, by nodes and pods: `make sizing`.

Up to 100,000 nodes on a simulated API server (`server.py`); at small sizes on a real one too, with the same objects
(`objects.py`), which shows whether the simulation may stand in for it.
"""
