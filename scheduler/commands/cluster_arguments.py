"""The options of commands that ask a cluster, or a scheduler in it."""

import argparse


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe how to reach the cluster."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster; default: your own kubeconfig")
    parser.add_argument("--context", help="a context of the kubeconfig; default: the current one")


def add_service_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe where in it the scheduler is."""
    parser.add_argument("--service", default="loadmaster", help="the scheduler's Service; default: %(default)s")
    parser.add_argument(
        "--service-namespace",
        default="kube-system",
        metavar="NAMESPACE",
        help="and its namespace; default: %(default)s",
    )
