"""The parts of NodeResourceTopologyMatch.

topology (what an object says) ──► zones (a node's amounts, by columns) ──► alignment (Filter), strategies (Score)
                                      ▲
       over_reserve: pods that were placed since, taken off all zones; fingerprint: when an object knows of them
"""
