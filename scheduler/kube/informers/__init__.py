"""The cluster as seen by watches and lists: decoding, and comparisons that repair what a watch has missed.

Their effect on cache and queue is in `scheduler.cycle`.
"""

import sys

# kopf loads the whole client library, 20 MB of memory, if it is there, only to recognise its objects. It gets none.
if "kubernetes" not in sys.modules:
    sys.modules["kubernetes"] = None  # type: ignore[assignment]
    import kopf as kopf

    del sys.modules["kubernetes"]
