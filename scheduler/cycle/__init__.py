"""The scheduling cycle and the binding cycle: filter, score, select; then reserve, permit, bind.

Plugins are called in `runtime`; calls to the API server are made in `kube`.
"""
