"""`loadmaster doctor`: its options; `doctoring.py` does the work."""

import argparse
from typing import Final

from scheduler.commands.options import (
    add_cluster_arguments,
    add_output_argument,
    add_plugin_arguments,
    add_service_arguments,
    describe,
)

DESCRIPTION: Final = """\
Examine an installation: permissions, versions, what the API server serves, who leads, clocks, tables, plugins,
certificates, metrics, and pods that wait. Each line says what was found and what to do; what you may not read is named.
Nothing is written. Exit code 1 if there is a problem.
"""

EPILOG: Final = """\
examples:
  loadmaster doctor
  loadmaster doctor --service-namespace scheduling --service gpu
  loadmaster doctor --metrics-reader monitoring/prometheus -o json
  kubectl exec -n kube-system deploy/loadmaster -- loadmaster doctor --config /etc/loadmaster/config.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
    add_cluster_arguments(parser)
    add_service_arguments(parser)
    parser.add_argument(
        "--metrics-reader",
        metavar="NAMESPACE/ACCOUNT",
        help="also check whether this service account, your Prometheus's, may read metrics",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the configuration to examine by, where neither the running scheduler's nor the ConfigMap can be read",
    )
    add_plugin_arguments(parser)
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Examine, and print it; 1 if there is a problem. Raises ConfigError, ClusterError."""
    import asyncio

    from scheduler.commands import doctoring

    return asyncio.run(doctoring.run(options))
