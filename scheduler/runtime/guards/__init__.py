"""What a failing, slow or hanging plugin costs: return values checked, faults named, calls timed, limits kept.

The calls themselves are in `runtime/plugin_calls.py`.
"""
